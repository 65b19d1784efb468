// report/style: the style sheet; see style.hpp.
#include "engine/report/style.hpp"

namespace shardbook::report {

std::string_view style() {
  return R"css(
:root { color-scheme: light;
  --ground: #ffffff; --text: #1d2127; --dim: #555e68; --border: #cdd3da; --grid: #e3e7ec; --lane: #f3f5f7;
  --code: #f4f5f7; --named: #fdeec4; --warn: #fff3d6; --warn-text: #6b4100; --head: #edf0f4;
  --compute: #2271b3; --compute-text: #ffffff; --comm: #c98a17; --comm-line: #8f5d00; --comm-text: #0c1015;
  --memory: #18947a; --memory-dot: #0b4f41; --memory-text: #0c1015; --exposed: #c8402a; --exposed-line: #7d1a0c;
  --idle: #6b737d; --cpu: #7583a3; --cpu-text: #0c1015; --mark: #1d2127; }
@media screen and (prefers-color-scheme: dark) { :root { color-scheme: dark;
  --ground: #14171b; --text: #dee3e9; --dim: #a3adb8; --border: #3b434d; --grid: #2a3038; --lane: #1c2026;
  --code: #1b1f25; --named: #4a3c12; --warn: #3a2e10; --warn-text: #f0c878; --head: #20252c;
  --compute: #4e9bdb; --compute-text: #0c1015; --comm: #efc468; --comm-line: #a87a1c; --comm-text: #0c1015;
  --memory: #2fb08e; --memory-dot: #0d5c48; --memory-text: #0c1015; --exposed: #e8694f; --exposed-line: #8e2411;
  --idle: #8b939d; --cpu: #8f9bb8; --cpu-text: #0c1015; --mark: #f2f4f7; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 28px 24px 48px; max-width: 1228px; background: var(--ground); color: var(--text);
  font: 15px/1.5 system-ui, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 25px; line-height: 1.25; margin: 0 0 4px; } h2 { font-size: 18px; margin: 36px 0 8px; }
p { margin: 6px 0; } .dim, .note { color: var(--dim); } .note { font-size: 13px; }
code, pre, .mono { font-family: ui-monospace, "DejaVu Sans Mono", "Liberation Mono", monospace; font-size: 13px; }
.clockname { display: inline-block; padding: 1px 9px; border: 2px solid var(--text); border-radius: 4px; font-weight: 650; }
.clockname.modelled { border-style: dashed; }
.banner { background: var(--warn); color: var(--warn-text); border-left: 4px solid currentColor; padding: 8px 12px; margin: 10px 0; }
.why, .sentence { font-size: 18px; line-height: 1.45; border-left: 4px solid var(--exposed); padding: 4px 0 4px 14px; margin: 10px 0; }
.source { background: var(--code); border: 1px solid var(--border); border-radius: 4px; padding: 8px 0; margin: 8px 0; line-height: 1.45;
  white-space: pre; overflow-x: auto; overflow-wrap: normal; }
.source span { display: block; padding: 0 12px; } .source i { font-style: normal; color: var(--dim); display: inline-block; width: 3.6em; }
.source .named { background: var(--named); font-weight: 650; } .source .named i { color: var(--text); }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; font-size: 13px; margin: 6px 0; }
.legend svg, .parts svg, td svg { vertical-align: -2px; margin-right: 5px; }
.bars { margin: 7px 0; font-size: 13px; line-height: 1.4; font-variant-numeric: tabular-nums; break-inside: avoid; } .bars b { font-weight: 650; } .bars svg.bar { display: block; width: 100%; height: auto; margin: 2px 0; }
.parts { display: flex; flex-wrap: wrap; gap: 0 20px; }
.scroll { overflow-x: auto; } svg.patterns { position: absolute; } svg.timeline { display: block; width: 100%; min-width: 860px; height: auto; }
table { border-collapse: collapse; width: 100%; font-size: 13px; font-variant-numeric: tabular-nums; margin: 6px 0; }
th { text-align: left; background: var(--head); font-weight: 600; vertical-align: bottom; } th, td { padding: 4px 9px; border-bottom: 1px solid var(--border); }
td { vertical-align: top; } .n { text-align: right; white-space: nowrap; } td.w { white-space: nowrap; } td.words { min-width: 24em; } td.op { min-width: 11em; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 3px 18px; margin: 8px 0; font-size: 14px; } dt { color: var(--dim); } dd { margin: 0; }
.config { display: flex; flex-wrap: wrap; gap: 2px 16px; } .config span { white-space: nowrap; }
svg text { font-family: system-ui, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif; fill: var(--text); }
text.rank { font-size: 12px; font-weight: 650; } text.row { font-size: 11px; } text.clock { font-size: 12px; font-weight: 650; }
text.share, text.tick, text.dim { font-size: 11px; fill: var(--dim); font-variant-numeric: tabular-nums; }
.tk, .tc, .tm, .th { font-size: 9.5px; pointer-events: none; stroke-width: 3px; paint-order: stroke; stroke-linejoin: round; }
svg .tk { fill: var(--compute-text); stroke: var(--compute); } svg .tc { fill: var(--comm-text); stroke: var(--comm); }
svg .tm { fill: var(--memory-text); stroke: var(--memory); } svg .th { fill: var(--cpu-text); stroke: var(--cpu); }
.lane { fill: var(--lane); } .grid { stroke: var(--grid); }
rect.k, rect.c, rect.m, rect.e, rect.h { stroke: var(--ground); stroke-width: .6; }
.k { fill: var(--compute); } .h { fill: var(--cpu); } .c { fill: url(#hatch); } .m { fill: url(#dots); } .e { fill: url(#cross); } .i { fill: none; stroke: var(--idle); stroke-width: 1; }
path.i { fill: var(--grid); stroke-width: .7; }
.hatch-ground { fill: var(--comm); } .hatch-line { fill: var(--comm-line); } .cross-ground { fill: var(--exposed); } .cross-line { fill: var(--exposed-line); }
.dots-ground { fill: var(--memory); } .dots-dot { fill: var(--memory-dot); }
.mark { fill: none; stroke: var(--mark); stroke-width: 1.8; } .sign { fill: var(--mark); stroke: var(--ground); stroke-width: 1; }
@media (max-width: 640px) { body { padding: 16px 12px; } dl { grid-template-columns: 1fr; } dd { margin-bottom: 6px; } }
@media print { @page { margin: 12mm; size: landscape; } body { padding: 0; max-width: none; font-size: 10pt; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .scroll, .source { overflow: visible; } .source { white-space: pre-wrap; } svg.timeline { min-width: 0; max-height: 180mm; } h2 { break-after: avoid; }
  tr, .bars, .source, figure { break-inside: avoid; } .legend { break-after: avoid; } thead { display: table-header-group; } td.words { min-width: 0; } td.op { min-width: 9.5em; } }
figure { margin: 8px 0; }
)css";
}

}  // namespace shardbook::report
