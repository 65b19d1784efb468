#include "engine/data/grammar/conjugate.hpp"

#include <sstream>

#include "engine/base/check.hpp"

namespace shardbook::data::grammar {

const Forms haber = {"he", "has", "ha", "hemos", "habéis", "han"};
const Forms estar_present = {"estoy", "estás", "está", "estamos", "estáis", "están"};
const Forms estar_imperfect = {"estaba", "estabas", "estaba", "estábamos", "estabais", "estaban"};
const Forms ser_present = {"soy", "eres", "es", "somos", "sois", "son"};
const Forms ser_imperfect = {"era", "eras", "era", "éramos", "erais", "eran"};

namespace {

// What a verb does otherwise than its class. Forms are six words; empty = regular.
struct Irregular {
  const char* infinitive;
  const char* present = "";
  const char* preterite = "";
  const char* imperfect = "";
  const char* future_stem = "";
  const char* gerund = "";
  const char* participle = "";
};

constexpr Irregular irregular_verbs[] = {
    {"tener", "tengo tienes tiene tenemos tenéis tienen", "tuve tuviste tuvo tuvimos tuvisteis tuvieron", "", "tendr"},
    {"ir", "voy vas va vamos vais van", "fui fuiste fue fuimos fuisteis fueron", "iba ibas iba íbamos ibais iban", "",
     "yendo"},
    {"hacer", "hago haces hace hacemos hacéis hacen", "hice hiciste hizo hicimos hicisteis hicieron", "", "har", "",
     "hecho"},
    {"decir", "digo dices dice decimos decís dicen", "dije dijiste dijo dijimos dijisteis dijeron", "", "dir",
     "diciendo", "dicho"},
    {"querer", "quiero quieres quiere queremos queréis quieren", "quise quisiste quiso quisimos quisisteis quisieron",
     "", "querr"},
    {"venir", "vengo vienes viene venimos venís vienen", "vine viniste vino vinimos vinisteis vinieron", "", "vendr",
     "viniendo"},
    {"poner", "pongo pones pone ponemos ponéis ponen", "puse pusiste puso pusimos pusisteis pusieron", "", "pondr", "",
     "puesto"},
    {"salir", "salgo sales sale salimos salís salen", "", "", "saldr"},
    {"ver", "veo ves ve vemos veis ven", "vi viste vio vimos visteis vieron", "veía veías veía veíamos veíais veían",
     "", "", "visto"},
    {"dar", "doy das da damos dais dan", "di diste dio dimos disteis dieron"},
    {"saber", "sé sabes sabe sabemos sabéis saben", "supe supiste supo supimos supisteis supieron", "", "sabr"},
    {"traer", "traigo traes trae traemos traéis traen", "traje trajiste trajo trajimos trajisteis trajeron", "", "",
     "trayendo", "traído"},
    {"leer", "", "leí leíste leyó leímos leísteis leyeron", "", "", "leyendo", "leído"},
    {"dormir", "duermo duermes duerme dormimos dormís duermen",
     "dormí dormiste durmió dormimos dormisteis durmieron", "", "", "durmiendo"},
    {"pedir", "pido pides pide pedimos pedís piden", "pedí pediste pidió pedimos pedisteis pidieron", "", "",
     "pidiendo"},
    {"servir", "sirvo sirves sirve servimos servís sirven", "serví serviste sirvió servimos servisteis sirvieron", "",
     "", "sirviendo"},
    {"jugar", "juego juegas juega jugamos jugáis juegan", "jugué jugaste jugó jugamos jugasteis jugaron"},
    {"empezar", "empiezo empiezas empieza empezamos empezáis empiezan",
     "empecé empezaste empezó empezamos empezasteis empezaron"},
    {"buscar", "", "busqué buscaste buscó buscamos buscasteis buscaron"},
    {"llegar", "", "llegué llegaste llegó llegamos llegasteis llegaron"},
    {"pagar", "", "pagué pagaste pagó pagamos pagasteis pagaron"},
    {"cerrar", "cierro cierras cierra cerramos cerráis cierran"},
    {"encontrar", "encuentro encuentras encuentra encontramos encontráis encuentran"},
    {"perder", "pierdo pierdes pierde perdemos perdéis pierden"},
    {"conducir", "conduzco conduces conduce conducimos conducís conducen",
     "conduje condujiste condujo condujimos condujisteis condujeron"},
    {"construir", "construyo construyes construye construimos construís construyen",
     "construí construiste construyó construimos construisteis construyeron", "", "", "construyendo"},
    {"escribir", "", "", "", "", "", "escrito"},
    {"abrir", "", "", "", "", "", "abierto"},
};

Forms words_of(const char* six_words) {
  std::istringstream in(six_words);
  Forms forms;
  for (std::string& form : forms) in >> form;
  return forms;
}

Forms with_endings(const std::string& stem, const char* six_endings) {
  Forms forms = words_of(six_endings);
  for (std::string& form : forms) form = stem + form;
  return forms;
}

}  // namespace

Conjugation conjugate(std::string_view infinitive) {
  SHARDBOOK_CHECK(infinitive.size() >= 2, "'", infinitive, "' is no infinitive");
  const std::string whole(infinitive);
  const std::string stem = whole.substr(0, whole.size() - 2);
  const std::string ending = whole.substr(stem.size());
  SHARDBOOK_CHECK(ending == "ar" || ending == "er" || ending == "ir", "'", whole, "' is no infinitive");
  const bool ar = ending == "ar";

  // The endings of the verb's class.
  Conjugation verb;
  verb.infinitive = whole;
  verb.present = with_endings(stem, ar               ? "o as a amos áis an"
                                    : ending == "er" ? "o es e emos éis en"
                                                     : "o es e imos ís en");
  verb.preterite = with_endings(stem, ar ? "é aste ó amos asteis aron" : "í iste ió imos isteis ieron");
  verb.imperfect = with_endings(stem, ar ? "aba abas aba ábamos abais aban" : "ía ías ía íamos íais ían");
  verb.gerund = stem + (ar ? "ando" : "iendo");
  verb.participle = stem + (ar ? "ado" : "ido");
  std::string future_stem = whole;

  // What this verb does otherwise.
  for (const Irregular& irregular : irregular_verbs) {
    if (whole != irregular.infinitive) continue;
    auto replace = [](Forms& forms, const char* six_words) {
      if (*six_words != '\0') forms = words_of(six_words);
    };
    auto replace_word = [](std::string& word, const char* other) {
      if (*other != '\0') word = other;
    };
    replace(verb.present, irregular.present);
    replace(verb.preterite, irregular.preterite);
    replace(verb.imperfect, irregular.imperfect);
    replace_word(future_stem, irregular.future_stem);
    replace_word(verb.gerund, irregular.gerund);
    replace_word(verb.participle, irregular.participle);
  }
  verb.future = with_endings(future_stem, "é ás á emos éis án");
  return verb;
}

}  // namespace shardbook::data::grammar
