#include "engine/data/grammar/words.hpp"

namespace shardbook::data::grammar {

namespace {

constexpr Gender m = Gender::masculine;
constexpr Gender f = Gender::feminine;

constexpr Subject subject_table[] = {
    {"Ana", "Ana", 2, f, false, true},
    {"Pedro", "Pedro", 2, m, false, true},
    {"María", "María", 2, f, false, true},
    {"Luis", "Luis", 2, m, false, true},
    {"Carmen", "Carmen", 2, f, false, true},
    {"Diego", "Diego", 2, m, false, true},
    {"Lucía", "Lucía", 2, f, false, true},
    {"Tomás", "Tomás", 2, m, false, true},
    {"I", "yo", 0, m, true, true},
    {"you", "tú", 1, m, true, true},
    {"he", "él", 2, m, true, true},
    {"she", "ella", 2, f, true, true},
    {"we", "nosotros", 3, m, true, true},
    {"they", "ellos", 5, m, true, true},
    {"the teacher", "la profesora", 2, f, false, true},
    {"my brother", "mi hermano", 2, m, false, true},
    {"my sister", "mi hermana", 2, f, false, true},
    {"the doctor", "el médico", 2, m, false, true},
    {"the neighbour", "el vecino", 2, m, false, true},
    {"my grandmother", "mi abuela", 2, f, false, true},
    {"the girl", "la niña", 2, f, false, false},
    {"the children", "los niños", 5, m, false, false},
    {"the boys", "los chicos", 5, m, false, false},
    {"my friends", "mis amigos", 5, m, false, true},
    {"my parents", "mis padres", 5, m, false, true},
    {"the students", "los estudiantes", 5, m, false, true},
    {"Ana and Pedro", "Ana y Pedro", 5, m, false, true},
};

constexpr Action action_table[] = {
    {"speak", "speaks", "spoke", "spoken", "speaking", "hablar", false,
     {{{"with the teacher", "con la profesora"}, {"English", "inglés"}, {"on the phone", "por teléfono"}}}},
    {"buy", "buys", "bought", "bought", "buying", "comprar", false,
     {{{"the bread", "el pan", "it"}, {"the flowers", "las flores", "them"}, {"three apples", "tres manzanas"}}}},
    {"study", "studies", "studied", "studied", "studying", "estudiar", false,
     {{{"at the library", "en la biblioteca"}, {"history", "historia"}, {"for the exam", "para el examen"}}}},
    {"work", "works", "worked", "worked", "working", "trabajar", false,
     {{{"in a hospital", "en un hospital"}, {"at home", "en casa"}, {"with a cousin", "con un primo"}}}},
    {"sing", "sings", "sang", "sung", "singing", "cantar", false,
     {{{"the song", "la canción", "it"}, {"in the choir", "en el coro"}, {"very well", "muy bien"}}}},
    {"dance", "dances", "danced", "danced", "dancing", "bailar", false,
     {{{"at the party", "en la fiesta"}, {"in the street", "en la calle"}, {"very well", "muy bien"}}}},
    {"cook", "cooks", "cooked", "cooked", "cooking", "cocinar", false,
     {{{"the fish", "el pescado", "it"}, {"the potatoes", "las patatas", "them"}, {"a soup", "una sopa"}}}},
    {"listen", "listens", "listened", "listened", "listening", "escuchar", false,
     {{{"to the radio", "la radio", "it"}, {"to music", "música"}, {"to the birds", "los pájaros", "them"}}}},
    {"look", "looks", "looked", "looked", "looking", "mirar", false,
     {{{"at the stars", "las estrellas", "them"}, {"at the map", "el mapa", "it"}, {"at the sea", "el mar", "it"}}}},
    {"prepare", "prepares", "prepared", "prepared", "preparing", "preparar", false,
     {{{"the lesson", "la lección", "it"}, {"the coffee", "el café", "it"}, {"the salads", "las ensaladas", "them"}}}},
    {"eat", "eats", "ate", "eaten", "eating", "comer", false,
     {{{"an apple", "una manzana"}, {"rice", "arroz"}, {"with the family", "con la familia"}}}},
    {"drink", "drinks", "drank", "drunk", "drinking", "beber", false,
     {{{"water", "agua"}, {"a glass of milk", "un vaso de leche"}, {"the tea", "el té", "it"}}}},
    {"read", "reads", "read", "read", "reading", "leer", false,
     {{{"the newspaper", "el periódico", "it"}, {"two pages", "dos páginas"}, {"the letters", "las cartas", "them"}}}},
    {"learn", "learns", "learned", "learned", "learning", "aprender", false,
     {{{"a new word", "una palabra nueva"}, {"Spanish", "español"}, {"the numbers", "los números", "them"}}}},
    {"sell", "sells", "sold", "sold", "selling", "vender", false,
     {{{"the car", "el coche", "it"}, {"fruit", "fruta"}, {"the paintings", "los cuadros", "them"}}}},
    {"run", "runs", "ran", "run", "running", "correr", false,
     {{{"in the park", "en el parque"}, {"to the station", "hasta la estación"}, {"very fast", "muy rápido"}}}},
    {"live", "lives", "lived", "lived", "living", "vivir", true,
     {{{"in Madrid", "en Madrid"}, {"near the sea", "cerca del mar"}, {"in a small village", "en un pueblo pequeño"}}}},
    {"write", "writes", "wrote", "written", "writing", "escribir", false,
     {{{"a letter", "una carta"}, {"the poem", "el poema", "it"}, {"the answers", "las respuestas", "them"}}}},
    {"open", "opens", "opened", "opened", "opening", "abrir", false,
     {{{"the door", "la puerta", "it"}, {"the windows", "las ventanas", "them"}, {"the box", "la caja", "it"}}}},
    {"receive", "receives", "received", "received", "receiving", "recibir", false,
     {{{"a gift", "un regalo"}, {"good news", "buenas noticias"}, {"the package", "el paquete", "it"}}}},
    {"have", "has", "had", "had", "having", "tener", true,
     {{{"a dog", "un perro"}, {"two brothers", "dos hermanos"}, {"a good idea", "una buena idea"}}}},
    {"go", "goes", "went", "gone", "going", "ir", false,
     {{{"to the beach", "a la playa"}, {"to school", "a la escuela"}, {"to the market", "al mercado"}}}},
    {"make", "makes", "made", "made", "making", "hacer", false,
     {{{"the bed", "la cama", "it"}, {"a cake", "una tarta"}, {"a plan", "un plan"}}}},
    {"tell", "tells", "told", "told", "telling", "decir", false,
     {{{"the truth", "la verdad", "it"}, {"a lie", "una mentira"}, {"the truth again", "otra vez la verdad"}}}},
    {"want", "wants", "wanted", "wanted", "wanting", "querer", true,
     {{{"a coffee", "un café"}, {"the blue shirt", "la camisa azul"}, {"more time", "más tiempo"}}}},
    {"come", "comes", "came", "come", "coming", "venir", false,
     {{{"to the party", "a la fiesta"}, {"by train", "en tren"}, {"with a friend", "con un amigo"}}}},
    {"put", "puts", "put", "put", "putting", "poner", false,
     {{{"the keys on the table", "las llaves en la mesa"}, {"sugar in the coffee", "azúcar en el café"},
       {"the milk in the fridge", "la leche en la nevera"}}}},
    {"go out", "goes out", "went out", "gone out", "going out", "salir", false,
     {{{"with a friend", "con un amigo"}, {"very early", "muy temprano"}, {"without a coat", "sin abrigo"}}}},
    {"watch", "watches", "watched", "watched", "watching", "ver", false,
     {{{"a film", "una película"}, {"the news", "las noticias", "it"}, {"the match", "el partido", "it"}}}},
    {"give", "gives", "gave", "given", "giving", "dar", false,
     {{{"food to the cat", "comida al gato"}, {"water to the plants", "agua a las plantas"},
       {"a class", "una clase"}}}},
    {"know", "knows", "knew", "known", "knowing", "saber", true,
     {{{"the answer", "la respuesta", "it"}, {"the truth", "la verdad", "it"}, {"a lot", "mucho"}}}},
    {"bring", "brings", "brought", "brought", "bringing", "traer", false,
     {{{"the wine", "el vino", "it"}, {"a chair", "una silla"}, {"the plates", "los platos", "them"}}}},
    {"sleep", "sleeps", "slept", "slept", "sleeping", "dormir", false,
     {{{"in the tent", "en la tienda"}, {"on the sofa", "en el sofá"}, {"very well", "muy bien"}}}},
    {"ask", "asks", "asked", "asked", "asking", "pedir", false,
     {{{"for help", "ayuda"}, {"for the bill", "la cuenta", "it"}, {"for a glass of water", "un vaso de agua"}}}},
    {"play", "plays", "played", "played", "playing", "jugar", false,
     {{{"in the garden", "en el jardín"}, {"chess", "al ajedrez"}, {"football", "al fútbol"}}}},
    {"begin", "begins", "began", "begun", "beginning", "empezar", false,
     {{{"the class", "la clase", "it"}, {"a new book", "un libro nuevo"}, {"the work", "el trabajo", "it"}}}},
    {"look", "looks", "looked", "looked", "looking", "buscar", false,
     {{{"for the keys", "las llaves", "them"}, {"for a job", "un trabajo"}, {"for the hotel", "el hotel", "it"}}}},
    {"arrive", "arrives", "arrived", "arrived", "arriving", "llegar", false,
     {{{"late", "tarde"}, {"at the airport", "al aeropuerto"}, {"on time", "a tiempo"}}}},
    {"pay", "pays", "paid", "paid", "paying", "pagar", false,
     {{{"the bill", "la cuenta", "it"}, {"the rent", "el alquiler", "it"}, {"in cash", "en efectivo"}}}},
    {"close", "closes", "closed", "closed", "closing", "cerrar", false,
     {{{"the door", "la puerta", "it"}, {"the shop", "la tienda", "it"}, {"the books", "los libros", "them"}}}},
    {"find", "finds", "found", "found", "finding", "encontrar", false,
     {{{"the keys", "las llaves", "them"}, {"a coin", "una moneda"}, {"the way", "el camino", "it"}}}},
    {"lose", "loses", "lost", "lost", "losing", "perder", false,
     {{{"the match", "el partido", "it"}, {"the ticket", "la entrada", "it"}, {"the keys", "las llaves", "them"}}}},
    {"walk", "walks", "walked", "walked", "walking", "caminar", false,
     {{{"to school", "hasta la escuela"}, {"along the river", "por el río"}, {"very slowly", "muy despacio"}}}},
    {"wash", "washes", "washed", "washed", "washing", "lavar", false,
     {{{"the dishes", "los platos", "them"}, {"the car", "el coche", "it"}, {"the clothes", "la ropa", "them"}}}},
    {"paint", "paints", "painted", "painted", "painting", "pintar", false,
     {{{"the wall", "la pared", "it"}, {"a portrait", "un retrato"}, {"the chairs", "las sillas", "them"}}}},
    {"help", "helps", "helped", "helped", "helping", "ayudar", false,
     {{{"the neighbour", "al vecino"}, {"the children", "a los niños"}, {"in the kitchen", "en la cocina"}}}},
    {"visit", "visits", "visited", "visited", "visiting", "visitar", false,
     {{{"the museum", "el museo", "it"}, {"the city", "la ciudad", "it"}, {"the gardens", "los jardines", "them"}}}},
    {"travel", "travels", "travelled", "travelled", "travelling", "viajar", false,
     {{{"to Mexico", "a México"}, {"by bus", "en autobús"}, {"with the family", "con la familia"}}}},
    {"wait", "waits", "waited", "waited", "waiting", "esperar", false,
     {{{"for the bus", "el autobús", "it"}, {"for a friend", "a un amigo"}, {"at the station", "en la estación"}}}},
    {"clean", "cleans", "cleaned", "cleaned", "cleaning", "limpiar", false,
     {{{"the kitchen", "la cocina", "it"}, {"the floor", "el suelo", "it"}, {"the windows", "las ventanas", "them"}}}},
    {"serve", "serves", "served", "served", "serving", "servir", false,
     {{{"the soup", "la sopa", "it"}, {"the coffee", "el café", "it"}, {"the drinks", "las bebidas", "them"}}}},
    {"drive", "drives", "drove", "driven", "driving", "conducir", false,
     {{{"the bus", "el autobús", "it"}, {"very slowly", "muy despacio"}, {"to the office", "a la oficina"}}}},
    {"build", "builds", "built", "built", "building", "construir", false,
     {{{"the bridge", "el puente", "it"}, {"the houses", "las casas", "them"}, {"a tower", "una torre"}}}},
};

constexpr Noun noun_table[] = {
    {"book", "books", "a", "libro", "libros", m, true},
    {"house", "houses", "a", "casa", "casas", f, true},
    {"box", "boxes", "a", "caja", "cajas", f, true},
    {"child", "children", "a", "niño", "niños", m, false},
    {"city", "cities", "a", "ciudad", "ciudades", f, false},
    {"pencil", "pencils", "a", "lápiz", "lápices", m, true},
    {"mouse", "mice", "a", "ratón", "ratones", m, true},
    {"knife", "knives", "a", "cuchillo", "cuchillos", m, true},
    {"apple", "apples", "an", "manzana", "manzanas", f, true},
    {"orange", "oranges", "an", "naranja", "naranjas", f, true},
    {"egg", "eggs", "an", "huevo", "huevos", m, true},
    {"umbrella", "umbrellas", "an", "paraguas", "paraguas", m, true},
    {"university", "universities", "a", "universidad", "universidades", f, false},
    {"hour", "hours", "an", "hora", "horas", f, false},
    {"song", "songs", "a", "canción", "canciones", f, false},
    {"exam", "exams", "an", "examen", "exámenes", m, false},
    {"fish", "fish", "a", "pez", "peces", m, true},
    {"tooth", "teeth", "a", "diente", "dientes", m, false},
    {"foot", "feet", "a", "pie", "pies", m, false},
    {"woman", "women", "a", "mujer", "mujeres", f, false},
    {"man", "men", "a", "hombre", "hombres", m, false},
    {"hand", "hands", "a", "mano", "manos", f, false},
    {"day", "days", "a", "día", "días", m, false},
    {"map", "maps", "a", "mapa", "mapas", m, true},
    {"problem", "problems", "a", "problema", "problemas", m, false},
    {"photo", "photos", "a", "foto", "fotos", f, true},
    {"train", "trains", "a", "tren", "trenes", m, true},
    {"flower", "flowers", "a", "flor", "flores", f, true},
    {"tree", "trees", "a", "árbol", "árboles", m, true},
    {"leaf", "leaves", "a", "hoja", "hojas", f, true},
    {"wolf", "wolves", "a", "lobo", "lobos", m, false},
    {"potato", "potatoes", "a", "patata", "patatas", f, true},
    {"watch", "watches", "a", "reloj", "relojes", m, true},
    {"glass", "glasses", "a", "vaso", "vasos", m, true},
    {"bus", "buses", "a", "autobús", "autobuses", m, true},
    {"baby", "babies", "a", "bebé", "bebés", m, false},
    {"key", "keys", "a", "llave", "llaves", f, true},
    {"sheep", "sheep", "a", "oveja", "ovejas", f, false},
    {"voice", "voices", "a", "voz", "voces", f, false},
    {"light", "lights", "a", "luz", "luces", f, false},
    {"language", "languages", "a", "idioma", "idiomas", m, false},
    {"shoe", "shoes", "a", "zapato", "zapatos", m, true},
    {"shirt", "shirts", "a", "camisa", "camisas", f, true},
    {"chair", "chairs", "a", "silla", "sillas", f, true},
    {"door", "doors", "a", "puerta", "puertas", f, true},
    {"car", "cars", "a", "coche", "coches", m, true},
    {"dog", "dogs", "a", "perro", "perros", m, true},
    {"cat", "cats", "a", "gato", "gatos", m, true},
    {"bird", "birds", "a", "pájaro", "pájaros", m, true},
    {"bridge", "bridges", "a", "puente", "puentes", m, true},
    {"street", "streets", "a", "calle", "calles", f, false},
    {"river", "rivers", "a", "río", "ríos", m, false},
    {"lion", "lions", "a", "león", "leones", m, false},
    {"island", "islands", "an", "isla", "islas", f, false},
    {"idea", "ideas", "an", "idea", "ideas", f, false},
};

constexpr Adjective adjective_table[] = {
    {"new", "nuevo", "nueva", "nuevos", "nuevas"},
    {"old", "viejo", "vieja", "viejos", "viejas"},
    {"small", "pequeño", "pequeña", "pequeños", "pequeñas"},
    {"big", "grande", "grande", "grandes", "grandes"},
    {"pretty", "bonito", "bonita", "bonitos", "bonitas"},
    {"red", "rojo", "roja", "rojos", "rojas"},
    {"white", "blanco", "blanca", "blancos", "blancas"},
    {"black", "negro", "negra", "negros", "negras"},
    {"green", "verde", "verde", "verdes", "verdes"},
    {"blue", "azul", "azul", "azules", "azules"},
    {"grey", "gris", "gris", "grises", "grises"},
    {"yellow", "amarillo", "amarilla", "amarillos", "amarillas"},
    {"clean", "limpio", "limpia", "limpios", "limpias"},
    {"dirty", "sucio", "sucia", "sucios", "sucias"},
    {"different", "diferente", "diferente", "diferentes", "diferentes"},
};

constexpr Comparison comparison_table[] = {
    {"taller", "the tallest", "más ", {"tall", "alto", "alta", "altos", "altas"}},
    {"shorter", "the shortest", "más ", {"short", "bajo", "baja", "bajos", "bajas"}},
    {"younger", "the youngest", "más ", {"young", "joven", "joven", "jóvenes", "jóvenes"}},
    {"stronger", "the strongest", "más ", {"strong", "fuerte", "fuerte", "fuertes", "fuertes"}},
    {"faster", "the fastest", "más ", {"fast", "rápido", "rápida", "rápidos", "rápidas"}},
    {"happier", "the happiest", "más ", {"happy", "feliz", "feliz", "felices", "felices"}},
    {"more patient", "the most patient", "más ", {"patient", "paciente", "paciente", "pacientes", "pacientes"}},
    {"more generous", "the most generous", "más ", {"generous", "generoso", "generosa", "generosos", "generosas"}},
    {"better", "the best", "", {"good", "mejor", "mejor", "mejores", "mejores"}},
    {"worse", "the worst", "", {"bad", "peor", "peor", "peores", "peores"}},
};

constexpr Profession profession_table[] = {
    {"teacher", "a", "teachers", {"teacher", "profesor", "profesora", "profesores", "profesoras"}},
    {"doctor", "a", "doctors", {"doctor", "médico", "médica", "médicos", "médicas"}},
    {"engineer", "an", "engineers", {"engineer", "ingeniero", "ingeniera", "ingenieros", "ingenieras"}},
    {"artist", "an", "artists", {"artist", "artista", "artista", "artistas", "artistas"}},
    {"lawyer", "a", "lawyers", {"lawyer", "abogado", "abogada", "abogados", "abogadas"}},
    {"nurse", "a", "nurses", {"nurse", "enfermero", "enfermera", "enfermeros", "enfermeras"}},
    {"writer", "a", "writers", {"writer", "escritor", "escritora", "escritores", "escritoras"}},
};

constexpr Adjective trait_table[] = {
    {"tall", "alto", "alta", "altos", "altas"},
    {"kind", "amable", "amable", "amables", "amables"},
    {"nice", "simpático", "simpática", "simpáticos", "simpáticas"},
    {"serious", "serio", "seria", "serios", "serias"},
    {"shy", "tímido", "tímida", "tímidos", "tímidas"},
    {"intelligent", "inteligente", "inteligente", "inteligentes", "inteligentes"},
    {"hard-working", "trabajador", "trabajadora", "trabajadores", "trabajadoras"},
};

constexpr Adjective mood_table[] = {
    {"tired", "cansado", "cansada", "cansados", "cansadas"},
    {"ill", "enfermo", "enferma", "enfermos", "enfermas"},
    {"happy", "contento", "contenta", "contentos", "contentas"},
    {"sad", "triste", "triste", "tristes", "tristes"},
    {"busy", "ocupado", "ocupada", "ocupados", "ocupadas"},
    {"angry", "enfadado", "enfadada", "enfadados", "enfadadas"},
    {"nervous", "nervioso", "nerviosa", "nerviosos", "nerviosas"},
};

}  // namespace

std::span<const Subject> subjects() { return subject_table; }
std::span<const Subject> names() { return std::span(subject_table).first(8); }
std::span<const Action> actions() { return action_table; }
std::span<const Noun> nouns() { return noun_table; }
std::span<const Adjective> adjectives() { return adjective_table; }
std::span<const Comparison> comparisons() { return comparison_table; }
std::span<const Profession> professions() { return profession_table; }
std::span<const Adjective> traits() { return trait_table; }
std::span<const Adjective> moods() { return mood_table; }

std::string capital(std::string_view sentence) {
  // The one letter beyond ASCII that begins a sentence of the drills.
  constexpr std::string_view small_e = "é";
  if (sentence.starts_with(small_e)) return "É" + std::string(sentence.substr(small_e.size()));
  std::string result(sentence);
  if (!result.empty() && result[0] >= 'a' && result[0] <= 'z') result[0] = static_cast<char>(result[0] - 'a' + 'A');
  return result;
}

const char* definite(Gender gender, bool plural) {
  if (gender == Gender::masculine) return plural ? "los" : "el";
  return plural ? "las" : "la";
}

const char* indefinite(Gender gender, bool plural) {
  if (gender == Gender::masculine) return plural ? "unos" : "un";
  return plural ? "unas" : "una";
}

const char* english_pronoun(const Subject& subject) {
  constexpr const char* by_person[persons] = {"I", "you", "he", "we", "you", "they"};
  if (subject.person == 2 && subject.gender == Gender::feminine) return "she";
  return by_person[subject.person];
}

}  // namespace shardbook::data::grammar
