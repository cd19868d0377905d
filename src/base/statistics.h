#pragma once

#include <span>

namespace batchwright {

// An estimate with its confidence interval. When the sample is too small to give one, low and high are
// infinite.
struct Interval {
  double mid = 0, low = 0, high = 0;
};

// Both throw Internal on an empty sample. quantile interpolates linearly between order statistics (type 7 of
// Hyndman and Fan, "Sample quantiles in statistical packages", The American Statistician 50(4), 1996).
double median(std::span<const double> sample);
double quantile(std::span<const double> sample, double probability);

// Student's t distribution, by the regularised incomplete beta function (continued fraction of Abramowitz and
// Stegun 26.5.8, evaluated by Lentz's method). degrees_of_freedom >= 1.
double student_t_cdf(double t, double degrees_of_freedom);
double student_t_quantile(double probability, double degrees_of_freedom);  // by bisection, to 1e-10

// Confidence interval of a mean, Student's t. One value: no interval.
Interval mean_interval(std::span<const double> sample, double confidence = 0.95);

// Confidence interval of a population's median that assumes no distribution: two order statistics whose
// coverage is the binomial probability of the median lying between them (Hahn and Meeker, "Statistical
// Intervals", 5.2). Five values and fewer cannot reach 95 %: then Student's t on the logarithms (values must
// be positive), which assumes step times are log-normal.
Interval median_interval(std::span<const double> sample, double confidence = 0.95);

// The factor by which `numerator` exceeds `denominator`, from pairs measured on the same data: the location
// of log(numerator[i] / denominator[i]). Six pairs and more: Hodges and Lehmann's median of the Walsh
// averages with the exact interval of Wilcoxon's signed-rank test, which a few disturbed pairs do not move
// (Hollander, Wolfe, Chicken, "Nonparametric Statistical Methods", 3.2 and 3.3). Fewer: Student's t on the
// log ratios. Throws Internal on unequal or empty samples and on values that are not positive.
Interval paired_ratio_interval(std::span<const double> numerator, std::span<const double> denominator,
                               double confidence = 0.95);

}  // namespace batchwright
