#include "check/config_arithmetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <vector>

#include "check/config_tree.h"

namespace batchwright::check {
namespace {

// Recursive descent over the text; a failure anywhere moves to its end (there is nothing to recover). Most of
// what is read is no arithmetic, so that failing must cost nothing.
class Evaluator {
 public:
  Evaluator(std::string_view text, bool integer_division, const Lookup& lookup)
      : text_(text), integer_division_(integer_division), lookup_(lookup) {}

  std::optional<Computed> run() {
    Computed result = sum(0);
    skip_space();
    if (failed_ || at_ != text_.size()) return std::nullopt;
    return result;
  }

 private:
  Computed fail() {
    failed_ = true;
    at_ = text_.size();
    return {};
  }

  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }

  bool take(std::string_view word) {
    skip_space();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  static void join(Computed& left, const Computed& right) {
    left.constant = left.constant && right.constant;
    if (left.inexact.empty()) left.inexact = right.inexact;
  }

  Computed sum(int depth) {
    if (depth > 40) return fail();
    Computed left = product(depth);
    for (;;) {
      if (take("+")) {
        const Computed right = product(depth);
        left.value += right.value;
        join(left, right);
      } else if (take("-")) {
        const Computed right = product(depth);
        left.value -= right.value;
        join(left, right);
      } else {
        return left;
      }
    }
  }

  Computed product(int depth) {
    Computed left = unary(depth);
    for (;;) {
      skip_space();
      if (text_.substr(at_, 2) == "**") return fail();
      if (take("*")) {
        const Computed right = unary(depth);
        left.value *= right.value;
        join(left, right);
      } else if (take("//")) {
        divide(left, unary(depth), true);
      } else if (take("/")) {
        divide(left, unary(depth), integer_division_);
      } else if (take("%")) {
        const Computed right = unary(depth);
        if (right.value == 0) return fail();
        left.value = std::fmod(left.value, right.value);
        join(left, right);
      } else {
        return left;
      }
    }
  }

  void divide(Computed& left, const Computed& right, bool whole) {
    if (right.value == 0) {
      fail();
      return;
    }
    const double quotient = left.value / right.value;
    if (whole && std::floor(quotient) != quotient) {
      const double remainder = left.value - std::floor(quotient) * right.value;
      if (left.inexact.empty()) {
        left.inexact = fmt::format("{:g} / {:g} = {:g}, remainder {:g}", left.value, right.value,
                                   std::floor(quotient), remainder);
      }
    }
    left.value = whole ? std::floor(quotient) : quotient;
    join(left, right);
  }

  Computed unary(int depth) {
    if (depth > 40) return fail();
    if (take("-")) {
      Computed result = unary(depth + 1);
      result.value = -result.value;
      return result;
    }
    if (take("+")) return unary(depth + 1);
    if (take("(")) {
      Computed result = sum(depth + 1);
      if (!take(")")) return fail();
      return result;
    }
    skip_space();
    if (at_ >= text_.size()) return fail();
    const char c = text_[at_];
    if (std::isdigit(static_cast<unsigned char>(c)) || c == '.') return literal();
    return name_or_call(depth);
  }

  Computed literal() {
    const std::size_t start = at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const bool exponent_sign =
          (c == '-' || c == '+') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E') && at_ > start;
      if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_' && !exponent_sign) break;
      ++at_;
    }
    const auto number = parse_number(text_.substr(start, at_ - start));
    if (!number) return fail();
    return {.value = *number, .constant = true, .inexact = ""};
  }

  Computed name_or_call(int depth) {
    if (take("${") || take("$")) {
    }
    const std::size_t start = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_' || text_[at_] == '.'))
      ++at_;
    const std::string_view name = text_.substr(start, at_ - start);
    if (name.empty()) return fail();
    take("}");
    if (take("(")) return call(name, depth + 1);
    const std::optional<Computed> value = lookup_(name);
    if (!value) return fail();
    Computed result = *value;
    result.constant = false;
    return result;
  }

  Computed call(std::string_view name, int depth) {
    std::vector<Computed> arguments;
    do {
      arguments.push_back(sum(depth));
    } while (take(","));
    if (!take(")")) return fail();
    Computed result = arguments[0];
    const bool rounding = name == "int" || name == "round" || name == "math.floor";
    if (rounding)
      result.value = name == "round" ? std::round(result.value) : std::floor(result.value);
    else if (name == "ceil" || name == "math.ceil" || name == "np.ceil")
      result.value = std::ceil(result.value);
    else if (name == "max" || name == "min") {
      for (const Computed& other : arguments) {
        const bool better = name == "max" ? other.value > result.value : other.value < result.value;
        if (better) result = other;
      }
    } else {
      return fail();
    }
    return result;
  }

  std::string_view text_;
  bool integer_division_;
  const Lookup& lookup_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace

std::optional<Computed> evaluate_arithmetic(std::string_view expression, bool integer_division,
                                            const Lookup& lookup) {
  if (expression.size() > 400) return std::nullopt;
  auto result = Evaluator(expression, integer_division, lookup).run();
  if (result && !std::isfinite(result->value)) result.reset();
  return result;
}

}  // namespace batchwright::check
