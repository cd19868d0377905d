#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "check/values.h"

namespace batchwright::check {

// What people call things. A name decides only what the code itself leaves open (a parameter, a command-line
// argument, an object made in another file); whatever the file defines is taken from its definition.

std::string lower(std::string_view text);
// The part after the last dot: "self.args.lr" -> "lr". "args['lr']" -> "lr" as well.
std::string_view last_part(std::string_view dotted);
bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names);
bool contains_any(std::string_view text, std::initializer_list<std::string_view> words);
// The same for parts that begin a word: "n_split" is in "n_splits" and "my_n_split", not in "train_split".
bool has_part(std::string_view word, std::initializer_list<std::string_view> parts);

// Whether a name means the accumulation steps N: gradient_accumulation_steps, accum_iter, update_freq, ...
bool names_accumulation(std::string_view name);
// Whether a name counts labels, tokens or examples of a whole window: num_items_in_batch, total_tokens, ...
// The number of micro-batches in an epoch, as in `step + 1 == num_batches`.
bool names_epoch_length(std::string_view name);
// The same, of those that cannot mean N where a counter is divided by them.
bool names_epoch_period(std::string_view name);
bool names_window_count(std::string_view name);
// Whether a name is how many iterations or steps the whole training has.
bool names_run_length(std::string_view name);
bool names_count(std::string_view name);
// Whether a name is what part of a window a micro-batch is.
bool names_share(std::string_view name);
// Whether an iterable or its items are the micro-batches of one window.
bool names_micro_batches(std::string_view text);
// Whether a method's name is that of zeroing gradients.
bool zeroes_by_name(std::string_view name);
// Whether the text speaks of an exponential moving average of weights.
bool names_ema(std::string_view text);

// A number for a quantity that the file leaves open, with what it means. The values are chosen so that the
// quantities stay apart and divide each other: N 4, processes 2, micro-batch 2, batch 8, effective batch 32.
std::optional<Value> guess_number(std::string_view name);

// Optimizer, scheduler, scaler, ... by the name of a variable or by that of a class or factory function.
Role role_of_name(std::string_view dotted);
Role role_of_constructor(std::string_view dotted);

// Which side of a condition that cannot be computed is the ordinary one.
bool usual_side(std::string_view condition);

}  // namespace batchwright::check
