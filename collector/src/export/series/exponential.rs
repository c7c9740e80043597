//! A histogram with exponentially growing buckets, as OTLP defines it. At scale `s`, bucket `i` counts values greater
//! than `2^(i/2^s)` and at most `2^((i+1)/2^s)`.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::metrics::v1::ExponentialHistogramDataPoint;
use opentelemetry_proto::tonic::metrics::v1::exponential_histogram_data_point::Buckets;

/// Maximum number of buckets: the default of OpenTelemetry's SDKs. If a value does not fit, neighbouring buckets are
/// merged.
const BUCKETS_MAX: i32 = 160;

/// The scale of a new histogram. Its buckets are 0.3 % wide. Prometheus supports no finer scale.
const SCALE_MAX: i32 = 8;

/// The bits of a double that hold the fraction.
const FRACTION: u64 = (1 << 52) - 1;

/// An exponential histogram of values that are not negative.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Exponential {
    scale: Option<i32>,
    counts: BTreeMap<i32, u64>,
    zeros: u64,
    sum: f64,
    range: Option<(f64, f64)>,
}

impl Exponential {
    /// Counts a value. A negative value counts as zero. Infinity and NaN are ignored.
    pub(super) fn record(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        let value = value.max(0.0);
        self.sum += value;
        self.range = Some(match self.range {
            Some((min, max)) => (min.min(value), max.max(value)),
            None => (value, value),
        });
        // A subnormal number counts as zero: no measured value is that small.
        if value < f64::MIN_POSITIVE {
            self.zeros += 1;
            return;
        }
        let mut scale = self.scale.unwrap_or(SCALE_MAX);
        let first = self.counts.first_key_value().map(|(index, _)| *index);
        let last = self.counts.last_key_value().map(|(index, _)| *index);
        let mut index = bucket(value, scale);
        let (mut low, mut high) =
            (first.unwrap_or(index).min(index), last.unwrap_or(index).max(index));
        let mut steps = 0;
        while high - low >= BUCKETS_MAX {
            (low, high, index) = (low >> 1, high >> 1, index >> 1);
            steps += 1;
        }
        if steps > 0 {
            let mut merged = BTreeMap::new();
            for (index, count) in std::mem::take(&mut self.counts) {
                *merged.entry(index >> steps).or_default() += count;
            }
            self.counts = merged;
            scale -= steps;
        }
        self.scale = Some(scale);
        *self.counts.entry(index).or_default() += 1;
    }

    /// Number of counted values.
    pub(super) fn count(&self) -> u64 {
        self.zeros + self.counts.values().sum::<u64>()
    }

    /// The point without attributes, times and exemplars.
    pub(super) fn point(&self) -> ExponentialHistogramDataPoint {
        let offset = self.counts.first_key_value().map_or(0, |(index, _)| *index);
        let last = self.counts.last_key_value().map_or(offset - 1, |(index, _)| *index);
        let counts = (offset..=last).map(|index| self.counts.get(&index).copied().unwrap_or(0));
        ExponentialHistogramDataPoint {
            count: self.count(),
            sum: Some(self.sum),
            scale: self.scale.unwrap_or(SCALE_MAX),
            zero_count: self.zeros,
            positive: Some(Buckets { offset, bucket_counts: counts.collect() }),
            min: self.range.map(|(min, _)| min),
            max: self.range.map(|(_, max)| max),
            ..ExponentialHistogramDataPoint::default()
        }
    }
}

/// The bucket of a normal, positive number.
fn bucket(value: f64, scale: i32) -> i32 {
    let bits = value.to_bits();
    let exponent = i32::try_from(bits >> 52 & 0x7ff).unwrap_or(0) - 1_023;
    // A bucket includes its upper edge, and powers of two are edges at every scale.
    let is_edge = bits & FRACTION == 0;
    if scale <= 0 {
        return (exponent - i32::from(is_edge)) >> scale.unsigned_abs().min(31);
    }
    if is_edge {
        return (exponent << scale) - 1;
    }
    let parts = f64::from(1_i32 << scale);
    #[expect(clippy::cast_possible_truncation, reason = "at most 1,024 times 256")]
    let part = (value.log2() * parts).ceil() as i32 - 1;
    // The logarithm is rounded. Clamping keeps a value between the two powers of two that enclose it.
    part.clamp(exponent << scale, ((exponent + 1) << scale) - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[f64]) -> Exponential {
        let mut all = Exponential::default();
        values.iter().for_each(|value| all.record(*value));
        all
    }

    /// Lower edge (excluded) and upper edge (included) of a bucket.
    fn edges(index: i32, scale: i32) -> (f64, f64) {
        let base = 2_f64.powf(2_f64.powi(-scale));
        (base.powi(index), base.powi(index + 1))
    }

    #[test]
    fn powers_of_two_lie_at_the_upper_edge_of_their_bucket() {
        for scale in -4..=SCALE_MAX {
            for exponent in -20..=20 {
                let index = bucket(2_f64.powi(exponent), scale);
                let expected = match scale {
                    1.. => (exponent << scale) - 1,
                    _ => (exponent - 1) >> -scale,
                };
                assert_eq!(index, expected, "2^{exponent} at scale {scale}");
            }
        }
    }

    #[test]
    fn the_example_of_the_specification() {
        // At scale 0: (1/4, 1/2] is bucket -2, (1/2, 1] is -1, (1, 2] is 0, (2, 4] is 1.
        let found = [0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0].map(|value| bucket(value, 0));
        assert_eq!(found, [-2, -2, -1, -1, 0, 0, 1, 1]);
    }

    #[test]
    fn a_milliseconds_and_a_days_span_fit_into_the_same_histogram() {
        let point = of(&[0.001, 86_400.0, 0.0, -1.0, f64::NAN, f64::INFINITY]).point();
        let buckets = point.positive.unwrap();
        assert!(buckets.bucket_counts.len() <= 160, "{}", buckets.bucket_counts.len());
        assert_eq!((point.count, point.zero_count, point.sum), (4, 2, Some(86_400.001)));
        assert_eq!((point.min, point.max), (Some(0.0), Some(86_400.0)));
        assert_eq!(of(&[]).point().positive.unwrap().bucket_counts, Vec::<u64>::new());
    }

    #[test]
    fn the_extremes_of_a_double_fit() {
        let point = of(&[f64::MIN_POSITIVE, f64::MAX, 1.0]).point();
        assert_eq!(point.positive.unwrap().bucket_counts.iter().sum::<u64>(), 3);
        assert_eq!(of(&[5e-324]).point().zero_count, 1);
    }

    proptest! {
        #[test]
        fn every_value_lies_in_its_bucket(values in proptest::collection::vec(1e-6..1e9_f64, 1..60)) {
            let all = of(&values);
            let point = all.point();
            let buckets = point.positive.unwrap();
            prop_assert_eq!(buckets.bucket_counts.iter().sum::<u64>(), values.len() as u64);
            prop_assert!(buckets.bucket_counts.len() <= 160);
            for value in &values {
                let index = bucket(*value, point.scale);
                let (low, high) = edges(index, point.scale);
                let slack = value * 1e-9;
                prop_assert!(low - slack <= *value && *value <= high + slack, "{} in {}..{}", value, low, high);
                prop_assert!(all.counts.contains_key(&index));
            }
            // The order of the values makes no difference.
            let mut reversed = values.clone();
            reversed.reverse();
            let other = of(&reversed);
            prop_assert_eq!(other.counts, all.counts);
            prop_assert_eq!(other.scale, all.scale);
        }
    }
}
