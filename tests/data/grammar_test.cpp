// The drills: right in both languages, varied, and the same on every machine.
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "engine/data/grammar/corpus.hpp"
#include "engine/data/grammar/drills.hpp"
#include "engine/data/stream.hpp"

namespace shardbook::data::grammar {
namespace {

TEST(Corpus, IsAPureFunctionOfItsSeed) {
  EXPECT_EQ(corpus(0), corpus(0));
  EXPECT_NE(corpus(0), corpus(1));
  EXPECT_GE(corpus(0).size(), 300'000u);
}

TEST(Corpus, IsUtf8InParagraphsWithATitle) {
  const std::string text = corpus(0);
  EXPECT_EQ(first_invalid_utf8({reinterpret_cast<const unsigned char*>(text.data()), text.size()}), -1);
  EXPECT_TRUE(text.starts_with("## "));
  EXPECT_TRUE(text.ends_with("\n\n"));
  EXPECT_EQ(text.find("\n\n\n"), std::string::npos);
  EXPECT_EQ(text.find("  "), std::string::npos);
}

TEST(Corpus, IsVaried) {
  std::istringstream lines(corpus(0));
  std::set<std::string> distinct;
  for (std::string line; std::getline(lines, line);) distinct.insert(line);
  EXPECT_GT(distinct.size(), 4000u);
}

TEST(Corpus, NeverBreaksTheRulesThatItTeaches) {
  const std::string text = corpus(2, 1'000'000);
  for (const char* wrong :
       {" a apple", " a egg", " a old", " a orange", " an book", " an new", " does reads", "He do ", " el casa", " la libro",
        " el flores", " los casas", " las libros", " de el ", " a el ", "yo es ", " tú es ", "I is ", "we was ", "they was ",
        "You is", " un casa", " una libro", " el mano", "la mapa", "la problema", "la día", "la agua", "él está cansada",
        "ella está cansado", "did not bought", "did not went", "childs", "foots", "mouses", "lápizs", "luzs", "vozs"}) {
    EXPECT_EQ(text.find(wrong), std::string::npos) << wrong;
  }
}

std::string joined(const Forms& forms) {
  std::string all;
  for (const std::string& form : forms) all += (all.empty() ? "" : " ") + form;
  return all;
}

TEST(Conjugation, FollowsTheClassOfARegularVerb) {
  const Conjugation hablar = conjugate("hablar");
  EXPECT_EQ(joined(hablar.present), "hablo hablas habla hablamos habláis hablan");
  EXPECT_EQ(joined(hablar.preterite), "hablé hablaste habló hablamos hablasteis hablaron");
  EXPECT_EQ(joined(hablar.imperfect), "hablaba hablabas hablaba hablábamos hablabais hablaban");
  EXPECT_EQ(joined(hablar.future), "hablaré hablarás hablará hablaremos hablaréis hablarán");
  EXPECT_EQ(hablar.gerund + " " + hablar.participle, "hablando hablado");
  const Conjugation comer = conjugate("comer");
  EXPECT_EQ(joined(comer.present), "como comes come comemos coméis comen");
  EXPECT_EQ(joined(comer.preterite), "comí comiste comió comimos comisteis comieron");
  EXPECT_EQ(joined(comer.imperfect), "comía comías comía comíamos comíais comían");
  EXPECT_EQ(comer.gerund + " " + comer.participle, "comiendo comido");
  EXPECT_EQ(joined(conjugate("vivir").present), "vivo vives vive vivimos vivís viven");
}

TEST(Conjugation, KnowsWhatIrregularVerbsDoOtherwise) {
  EXPECT_EQ(conjugate("tener").present[0] + " " + conjugate("tener").future[0], "tengo tendré");
  EXPECT_EQ(joined(conjugate("ir").imperfect), "iba ibas iba íbamos ibais iban");
  EXPECT_EQ(joined(conjugate("ir").future), "iré irás irá iremos iréis irán");
  EXPECT_EQ(conjugate("ir").gerund + " " + conjugate("ir").participle, "yendo ido");
  EXPECT_EQ(conjugate("hacer").preterite[2] + " " + conjugate("hacer").participle, "hizo hecho");
  EXPECT_EQ(conjugate("decir").future[1] + " " + conjugate("decir").gerund, "dirás diciendo");
  EXPECT_EQ(conjugate("dormir").present[3] + " " + conjugate("dormir").preterite[5], "dormimos durmieron");
  EXPECT_EQ(conjugate("construir").preterite[2] + " " + conjugate("construir").imperfect[0], "construyó construía");
  EXPECT_EQ(conjugate("escribir").participle + " " + conjugate("abrir").participle, "escrito abierto");
  EXPECT_EQ(conjugate("leer").preterite[2] + " " + conjugate("leer").participle, "leyó leído");
  EXPECT_EQ(conjugate("empezar").preterite[0] + " " + conjugate("llegar").preterite[0], "empecé llegué");
}

TEST(Sentences, AgreeInBothLanguages) {
  const Subject she{"she", "ella", 2, Gender::feminine, true, true};
  const Subject they{"they", "ellos", 5, Gender::masculine, true, true};
  const Action write{"write", "writes", "wrote", "written", "writing", "escribir", false, {}};
  const Complement letter{"a letter", "una carta"};
  EXPECT_EQ(english_sentence({she, write, letter}, Tense::present, false), "she writes a letter");
  EXPECT_EQ(english_sentence({she, write, letter}, Tense::present, true), "she does not write a letter");
  EXPECT_EQ(english_sentence({they, write, letter}, Tense::present, true), "they do not write a letter");
  EXPECT_EQ(english_sentence({she, write, letter}, Tense::past, true), "she did not write a letter");
  EXPECT_EQ(english_question({she, write, letter}, Tense::present), "Does she write a letter?");
  EXPECT_EQ(english_question({they, write, letter}, Tense::past), "Did they write a letter?");
  EXPECT_EQ(spanish_sentence({they, write, letter}, Tense::past, true), "ellos no escribieron una carta");
  EXPECT_EQ(spanish_question({she, write, letter}, Tense::present), "¿Escribe ella una carta?");
}

TEST(Words, AgreeWithTheirArticles) {
  for (const Noun& noun : nouns()) {
    const bool vowel = std::string("aeio").find(noun.english[0]) != std::string::npos;
    const bool silent_h = std::string(noun.english) == "hour";
    const bool said_with_u = std::string(noun.english) == "umbrella";
    EXPECT_EQ(std::string(noun.article), vowel || silent_h || said_with_u ? "an" : "a") << noun.english;
    const std::string many = noun.spanish_plural;
    EXPECT_EQ(many.back(), 's') << many;
  }
  EXPECT_EQ(capital("él come"), "Él come");
  EXPECT_EQ(capital("los niños"), "Los niños");
}

TEST(Words, GiveAPronounOnlyToANounWithItsArticle) {
  for (const Action& action : actions()) {
    for (const Complement& complement : action.complements) {
      if (*complement.object == '\0') continue;
      const std::string spanish = complement.spanish;
      const std::string article = spanish.substr(0, spanish.find(' '));
      EXPECT_TRUE(article == "el" || article == "la" || article == "los" || article == "las") << spanish;
      EXPECT_EQ(spanish.find(' '), spanish.rfind(' ')) << spanish;
      EXPECT_NE(std::string(complement.english).find("the "), std::string::npos) << complement.english;
    }
  }
}

}  // namespace
}  // namespace shardbook::data::grammar
