// What does mermaid.js find in each diagram of this folder? Writes NAME.json beside NAME.mmd.
//
//   npm ci && npm run ask            (all; give names for some; in a copy of the folder)
//
// A diagram is accepted if mermaid's parser takes it and, for gantt charts, if its tasks get their times.
// What both sides are reduced to before they are compared stands in README.md.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { JSDOM } from 'jsdom';

const dom = new JSDOM('<!DOCTYPE html><body></body>');
globalThis.window = dom.window;
globalThis.document = dom.window.document;
globalThis.Option = dom.window.Option;
const mermaid = (await import('mermaid')).default;
mermaid.initialize({ startOnLoad: false, securityLevel: 'loose', logLevel: 5 });

const folder = dirname(fileURLToPath(import.meta.url));
const chosen = process.argv.slice(2);

// --- Labels ---------------------------------------------------------------------------------------
function label(text, markdown = false) {
  if (text === undefined || text === null) return '';
  let out = String(text);
  if (markdown) out = out.replace(/\*/g, '').replace(/(^|\W)_|_(\W|$)/g, '$1$2');
  out = out.replace(/\\n/g, '\n').replace(/<br\s*\/?>/gi, '\n').replace(/<\/?[a-z][^>]*>/gi, '');
  // mermaid's own marks of #entities;, then HTML's.
  out = out.replace(/ﬂ°°/g, '&#').replace(/ﬂ°/g, '&').replace(/¶ß/g, ';');
  const area = dom.window.document.createElement('textarea');
  area.innerHTML = out;
  return area.value.split('\n').map((line) => line.trim()).join('\n').trim();
}

// --- Flowcharts -----------------------------------------------------------------------------------
const shapes = {
  square: 'rectangle', rect: 'rectangle', round: 'round', rounded: 'round', stadium: 'stadium', subroutine: 'subroutine', cylinder: 'cylinder',
  cyl: 'cylinder', circle: 'circle', doublecircle: 'double circle', ellipse: 'ellipse', diamond: 'diamond', diam: 'diamond', hexagon: 'hexagon',
  hex: 'hexagon', odd: 'flag', lean_right: 'parallelogram', lean_left: 'parallelogram back', trapezoid: 'trapezoid',
  inv_trapezoid: 'trapezoid back',
};
function heads(type) {
  const kind = { arrow_point: 'arrow', arrow_circle: 'circle', arrow_cross: 'cross', arrow_open: 'none' };
  if (type?.startsWith('double_')) return [kind[type.slice(7)], kind[type.slice(7)]];
  return ['none', kind[type] ?? 'none'];
}
function flowchart(db) {
  const direction = { TD: 'TB', undefined: '' };
  return {
    direction: direction[db.getDirection()] ?? db.getDirection(),
    nodes: [...db.getVertices().values()].map((node) => ({
      id: node.id,
      label: label(node.text, node.labelType === 'markdown'),
      shape: node.type === undefined ? 'rectangle' : (shapes[node.type] ?? node.type),
      // `clickable` is mermaid's own, for its pictures.
      classes: node.classes.filter((name) => name !== 'clickable'),
      link: node.link ?? '',
    })),
    edges: db.getEdges().map((edge) => {
      const [tail, head] = heads(edge.type);
      return { from: edge.start, to: edge.end, label: label(edge.text, edge.labelType === 'markdown'), stroke: edge.stroke, head, tail, length: edge.length };
    }),
    subgraphs: db.getSubGraphs().map((group) => ({
      id: group.id,
      title: label(group.title, group.labelType === 'markdown'),
      direction: direction[group.dir] ?? group.dir,
      members: [...group.nodes].sort(),
    })),
  };
}

// --- Sequence diagrams ----------------------------------------------------------------------------
const arrowOf = {
  SOLID: '->>', DOTTED: '-->>', SOLID_CROSS: '-x', DOTTED_CROSS: '--x', SOLID_OPEN: '->', DOTTED_OPEN: '-->', SOLID_POINT: '-)',
  DOTTED_POINT: '--)', BIDIRECTIONAL_SOLID: '<<->>', BIDIRECTIONAL_DOTTED: '<<-->>', SOLID_TOP: '-|\\', SOLID_BOTTOM: '-|/', STICK_TOP: '-\\\\',
  STICK_BOTTOM: '-//', SOLID_ARROW_TOP_REVERSE: '/|-', SOLID_ARROW_BOTTOM_REVERSE: '\\|-', STICK_ARROW_TOP_REVERSE: '//-',
  STICK_ARROW_BOTTOM_REVERSE: '\\\\-', SOLID_TOP_DOTTED: '--|\\', SOLID_BOTTOM_DOTTED: '--|/', STICK_TOP_DOTTED: '--\\\\',
  STICK_BOTTOM_DOTTED: '--//', SOLID_ARROW_TOP_REVERSE_DOTTED: '/|--', SOLID_ARROW_BOTTOM_REVERSE_DOTTED: '\\|--',
  STICK_ARROW_TOP_REVERSE_DOTTED: '//--', STICK_ARROW_BOTTOM_REVERSE_DOTTED: '\\\\--',
};
const blocks = { LOOP: 'loop', ALT: 'alt', OPT: 'opt', PAR: 'par', CRITICAL: 'critical', BREAK: 'break', RECT: 'rect' };
function sequence(db) {
  const nameOf = Object.fromEntries(Object.entries(db.LINETYPE).map(([name, number]) => [number, name]));
  const items = [];
  for (const message of db.getMessages()) {
    const kind = nameOf[message.type];
    if (kind in arrowOf) {
      items.push({ kind: 'message', from: message.from, to: message.to, arrow: arrowOf[kind], text: label(message.message) });
    } else if (kind === 'NOTE') {
      items.push({ kind: 'note', from: message.from, to: message.to, place: ['left', 'right', 'over'][message.placement], text: label(message.message) });
    } else if (kind === 'ACTIVE_START' || kind === 'ACTIVE_END') {
      items.push({ kind: kind === 'ACTIVE_START' ? 'activate' : 'deactivate', from: message.from });
    } else if (kind === 'AUTONUMBER') {
      items.push({ kind: 'autonumber' });
    } else {
      const [, word, part] = /^([A-Z]+?)_(?:OVER_)?([A-Z]+)$/.exec(kind) ?? [];
      if (!(word in blocks)) continue;
      const place = part === 'START' ? 'begin' : part === 'END' ? 'end' : 'next';
      const item = { kind: place, block: blocks[word] };
      if (place !== 'end') item.text = label(typeof message.message === 'string' ? message.message : message.message?.text);
      items.push(item);
    }
  }
  const kept = [...db.getActors().values()];
  const bands = db.getBoxes();
  return {
    participants: kept.map((actor) => ({
      id: actor.name, label: label(actor.description), actor: actor.type === 'actor', box: actor.box ? bands.indexOf(actor.box) : -1,
    })),
    boxes: bands.length,
    items,
  };
}

// --- Gantt charts ---------------------------------------------------------------------------------
function gantt(db) {
  // A chart without dates stands on today: its times are told from midnight.
  const midnight = /[YDxX]/.test(db.getDateFormat()) ? 0 : new Date().setHours(0, 0, 0, 0);
  return {
    sections: db.getSections().map((section) => label(section)),
    tasks: db.getTasks().map((task) => ({
      section: label(task.section), name: label(task.task), id: task.id, 
      begin_ms: task.startTime.getTime() - midnight, end_ms: task.endTime.getTime() - midnight,
      done: !!task.done, active: !!task.active, crit: !!task.crit, milestone: !!task.milestone, vert: !!task.vert,
    })),
  };
}

// --- All files ------------------------------------------------------------------------------------
let accepted = 0, rejected = 0;
for (const file of readdirSync(folder).filter((name) => name.endsWith('.mmd')).sort()) {
  const name = file.slice(0, -4);
  if (chosen.length > 0 && !chosen.includes(name)) continue;
  let answer;
  try {
    const diagram = await mermaid.mermaidAPI.getDiagramFromText(readFileSync(join(folder, file), 'utf8'));
    const kind = diagram.type.startsWith('flowchart') ? 'flowchart' : diagram.type;
    const found = kind === 'flowchart' ? flowchart(diagram.db) : kind === 'sequence' ? sequence(diagram.db) : gantt(diagram.db);
    const title = kind === 'flowchart' ? {} : { title: label(diagram.db.getDiagramTitle?.()) };
    answer = { ok: true, kind, ...title, ...found };
    ++accepted;
  } catch (error) {
    answer = { ok: false, reason: String(error.message).split('\n')[0].slice(0, 120) };
    ++rejected;
  }
  writeFileSync(join(folder, name + '.json'), JSON.stringify(answer, null, 1) + '\n');
}
console.log(`${accepted} accepted, ${rejected} rejected`);
