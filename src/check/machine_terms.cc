// Sums of losses: how a value's share of each symbol changes under arithmetic.
#include <algorithm>
#include <cmath>

#include "check/machine.h"
#include "check/roles.h"

namespace batchwright::check {
namespace {

constexpr std::size_t kMaxTerms = 512;

bool same_factors(const Term& a, const Term& b) {
  return a.window == b.window && a.world == b.world && a.literal == b.literal && a.averaged == b.averaged &&
         a.normalised == b.normalised && a.counted == b.counted && a.scaled == b.scaled &&
         a.uncertain == b.uncertain && a.rescaled == b.rescaled;
}

// Factors that people put before a loss on purpose; they say nothing about the window.
bool names_loss_weight(std::string_view name) {
  if (name.ends_with("[]")) name.remove_suffix(2);
  const std::string word = lower(last_part(name));
  return contains_any(word, {"weight", "alpha",    "beta",    "lambda", "coef",  "gamma", "temp",
                             "lam",    "ratio",    "factor_", "eps",    "_w",    "w_",    "lr",
                             "kl",     "discount", "margin",  "reg",    "decay", "sign",  "mask"});
}

}  // namespace

Value Machine::symbol_value(const Expr* origin) {
  Symbol symbol;
  symbol.origin = origin;
  symbol.line = line_of(origin);
  symbol.stamp = stamp_;
  if (origin && origin->kind == ExprKind::Call) {
    const auto text = origin->source.substr(0, 400);
    const Expr* function = origin->kids.empty() ? nullptr : origin->kids[0];
    const bool counts =
        function && is_one_of(function->text, {"sum", "item", "numel", "size", "count_nonzero", "int", "long",
                                               "float", "get_num_tokens", "count_tokens"});
    symbol.count = counts &&
                   contains_any(text, {"!= ", ".ne(", "numel", "count_nonzero", "mask", ".size(",
                                       "num_tokens", "count_tokens"}) &&
                   !contains_any(lower(text), {"loss", "cross_entropy", "criterion"});
    symbol.summed = contains_any(text, {"reduction=\"sum\"", "reduction='sum'"});
  }
  trace_.symbols.push_back(symbol);
  Term term;
  term.symbol = static_cast<int>(trace_.symbols.size()) - 1;
  return with_terms({term});
}

Value Machine::with_terms(Terms terms) const {
  Value value;
  if (!terms.empty()) value.terms = std::make_shared<const Terms>(std::move(terms));
  return value;
}

// The value as a sum of losses. An open value becomes a loss of its own; numbers have no terms.
Terms Machine::terms_of(const Value& value, const Expr* origin) {
  if (value.has_terms()) return *value.terms;
  if (value.is(Value::Type::Number) || value.is(Value::Type::None) || value.is(Value::Type::String))
    return {};
  if (value.is(Value::Type::Object) && value.heap->role == Role::Cell)
    return terms_of(Value(value.heap->items[0]), origin);
  if (value.is(Value::Type::Sequence)) {
    Terms all;
    for (const Value& item : value.heap->items) {
      if (!item.has_terms()) continue;
      all.insert(all.end(), item.terms->begin(), item.terms->end());
      if (all.size() > kMaxTerms) break;
    }
    if (!all.empty() || !value.heap->items.empty()) return all;
  }
  return *symbol_value(origin).terms;
}

Value Machine::add(const Value& left, const Value& right, double sign, const Expr* origin) {
  // A tensor plus a number, or plus something that is not a loss: the terms stay as they are.
  const bool left_loss = left.has_terms(), right_loss = right.has_terms();
  if (!left_loss && !right_loss) return symbol_value(origin);
  if (!right_loss) return left;
  if (!left_loss && sign > 0) return right;
  // Only the side that a gradient flows through is trained.
  if (left_loss && left.cut != right.cut) {
    if (right.cut) return left;
    return sign > 0 ? right : scale_by(right, number_value(-1), false, origin);
  }
  const bool cut = right.cut;
  Terms sum = left_loss ? *left.terms : Terms{};
  for (Term term : *right.terms) {
    if (sign < 0) term.literal = -term.literal;
    bool merged = false;
    for (Term& known : sum)
      if (known.symbol == term.symbol && same_factors(known, term)) {
        merged = true;  // the same loss twice, as in a + a.detach(): one loss for the window's arithmetic
        break;
      }
    if (!merged && sum.size() < kMaxTerms) sum.push_back(term);
  }
  Value added = with_terms(std::move(sum));
  added.cut = cut;
  return added;
}

// A new quantity; a factor that was divided by the window's count leaves it divided.
Value Machine::product_of(const Value& left, const Value& right, const Expr* origin) {
  Terms terms = *symbol_value(origin).terms;
  const auto divided = [](const Value& value) {
    return std::all_of(value.terms->begin(), value.terms->end(),
                       [](const Term& term) { return term.normalised; });
  };
  terms.front().normalised = divided(left) || divided(right);
  Symbol& symbol = trace_.symbols.back();
  for (const Value* factor : {&left, &right})
    for (const Term& term : *factor->terms)
      for (const std::string* name : trace_.symbols[static_cast<std::size_t>(term.symbol)].modules)
        if (symbol.modules.size() < 24) symbol.modules.push_back(name);
  Value product = with_terms(std::move(terms));
  product.cut = left.cut && right.cut;
  return product;
}

// One of the values that an open call returned together.
Value Machine::part_of(const Value& whole, const Expr* target) {
  if (whole.terms->size() != 1 || whole.terms->front().window != 1) return whole;
  Terms terms = *whole.terms;
  const Symbol source = trace_.symbols[static_cast<std::size_t>(terms.front().symbol)];
  symbol_value(target);
  terms.front().symbol = static_cast<int>(trace_.symbols.size()) - 1;
  trace_.symbols.back().modules = source.modules;
  Value part = with_terms(std::move(terms));
  part.cut = whole.cut;
  return part;
}

bool Machine::is_count(const Value& value) const {
  if (value.has_terms()) {
    for (const Term& term : *value.terms)
      if (!trace_.symbols[static_cast<std::size_t>(term.symbol)].count) return false;
    return true;
  }
  return value.opaque() && value.name && names_count(*value.name);
}

bool Machine::from_this_iteration(const Terms& divisor, const Terms& dividend) const {
  for (const Term& below : divisor)
    for (const Term& above : dividend)
      if (trace_.symbols[static_cast<std::size_t>(below.symbol)].stamp !=
          trace_.symbols[static_cast<std::size_t>(above.symbol)].stamp)
        return false;
  return true;
}

// value * factor or value / factor, value being a loss or a gradient.
Value Machine::scale_by(const Value& value, const Value& factor, bool divide, const Expr* origin) {
  Terms terms = terms_of(value, origin);
  const auto number = as_number(factor);
  const bool written_so = factor.opaque() && !factor.name && !factor.has_terms() && divide && origin &&
                          origin->kind == ExprKind::Binary && origin->kids[1] &&
                          names_window_count(origin->kids[1]->source);
  const bool window_count = (factor.taint & kWindowCount) || written_so ||
                            (factor.name && factor.opaque() && names_window_count(*factor.name));
  const bool count = is_count(factor);
  for (Term& term : terms) {
    Symbol& symbol = trace_.symbols[static_cast<std::size_t>(term.symbol)];
    if (window_count) {
      term.normalised = true;
    } else if (number && number->number != 0 && std::isfinite(number->number)) {
      const double by = divide ? 1 / number->number : number->number;
      const auto global = static_cast<std::uint16_t>(kGlobalBatch | kLength | kBatchSize);
      if ((number->taint & kAccumulation) && (number->taint & (kWorld | kLocalWorld)) &&
          !(number->taint & global)) {
        // N * processes: both parts in one number.
        term.window *= divide ? by * trace_.world : by / trace_.world;
        term.world *= divide ? 1 / trace_.world : trace_.world;
      } else if (number->taint & kAccumulation)
        term.window *= by;
      else if ((number->taint & kWorld) && (number->taint & kBatchSize)) {
        // A size that was summed over the processes.
        term.counted = true;
        term.world *= divide ? 1 / trace_.world : trace_.world;
      } else if ((number->taint & kWorld) && (number->taint & kLength)) {
        term.averaged *= divide ? by * trace_.world : by / trace_.world;
        term.world *= divide ? 1 / trace_.world : trace_.world;
      } else if (number->taint & (kLength | kIndex))
        term.averaged *= by;
      else if (number->taint & (kWorld | kLocalWorld))
        term.world *= by;
      else if (number->taint & kGlobalBatch)
        term.normalised = true;
      else if (number->taint & kBatchSize)
        term.counted = true;
      else
        term.literal *= by;
    } else if (factor.has_terms()) {
      const bool own = from_this_iteration(*factor.terms, terms);
      term.rescaled = term.rescaled || (divide && !count);
      bool normalised = false;
      for (const Term& part : *factor.terms) normalised = normalised || part.normalised;
      if (normalised || (!own && (count || symbol.summed)))
        term.normalised = true;
      else if (count || symbol.summed)
        term.counted = true;
      if (factor.taint & kWorld) term.world *= divide ? 1 / trace_.world : trace_.world;
    } else if (!divide && factor.opaque() && factor.name && names_share(*factor.name)) {
      term.normalised = true;
    } else if (count) {
      // An attribute does not change from one micro-batch to the next: a sum that it divides stays a sum.
      const bool constant = origin && origin->kids.size() == 2 && origin->kids[1] &&
                            origin->kids[1]->source.starts_with("self.");
      (constant && symbol.summed ? term.normalised : term.counted) = true;
    } else if (factor.opaque() && !(factor.name && names_loss_weight(*factor.name)) && !number) {
      term.uncertain = term.uncertain || factor.name != nullptr;
    }
  }
  Value scaled = with_terms(std::move(terms));
  scaled.number = value.number;
  scaled.cut = value.cut;
  return scaled;
}

}  // namespace batchwright::check
