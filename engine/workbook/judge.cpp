// workbook/judge: the three kinds of work, judged; see exercise.hpp.
#include "engine/book/project.hpp"
#include "engine/workbook/answers.hpp"
#include "engine/workbook/exercise.hpp"
#include "engine/workbook/progress.hpp"

namespace shardbook::workbook {

using base::Error;
using base::text;

base::Result<Verdict> judge(const std::string& root, const Place& place, const std::string& file, const TrialOptions& options) {
  const std::string name = own_file_of(place);
  if (place.part->kind != Kind::notes) {
    const base::Result<std::string> content = book::read_text(file);
    if (!content) return content.as_error();
    if (const std::string why = why_no_text(content.value(), name); !why.empty()) return Verdict{false, {{"encoding", why + ": save it as UTF-8", name, 1, "", ""}}, {}, 0};
  }
  switch (place.part->kind) {
    case Kind::exercise:
      if (base::Status there = provide_exercise(root, place, options.build_folder); !there) return there.as_error();
      return try_exercise(root, place, file, options);
    case Kind::notes:
      if (!options.notes) return Error{text("nobody here judges the notes of ", place.part->id)};
      return options.notes(root, place, file);
    case Kind::answers: break;
  }
  base::Result<std::string> content = book::read_text(file);
  if (!content) return content.as_error();
  base::Result<Answers> answers = answers_from(content.value(), *place.part, name);
  if (!answers) return Verdict{false, {{"unreadable", answers.error(), name, 0, "", ""}}, {}, 0};
  Facts facts(root, *place.lab);
  return judge_answers(facts, *place.part, answers.value(), name);
}

}  // namespace shardbook::workbook
