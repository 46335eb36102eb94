//! Figures over rounds.

use serde::{Deserialize, Serialize};

/// A figure of every round, and what they come to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The middle one.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Figure {
    /// None of no rounds.
    pub fn of(rounds: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = rounds.into_iter().filter(|figure| figure.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let upper = *sorted.get(sorted.len() / 2)?;
        let lower = *sorted.get((sorted.len() - 1) / 2)?;
        Some(Self { median: f64::midpoint(lower, upper), min, max })
    }

    /// How far the rounds are apart, as a share of the median.
    pub fn spread(&self) -> f64 {
        if self.median == 0.0 { 0.0 } else { (self.max - self.min) / self.median.abs() }
    }

    /// The ratio of two figures, round by round: what drifts for both drifts out of it.
    pub fn ratio(of: &[Option<f64>], to: &[Option<f64>]) -> Option<Self> {
        Self::of(of.iter().zip(to).filter_map(|(of, to)| Some((*of)? / (*to)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_the_middle_of_the_rounds_whatever_their_order() {
        assert_eq!(Figure::of([3.0, 1.0, 2.0]), Some(Figure { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(Figure::of([4.0, 1.0]), Some(Figure { median: 2.5, min: 1.0, max: 4.0 }));
        assert_eq!(Figure::of([]), None);
        assert_eq!(Figure::of([f64::NAN, f64::INFINITY]), None);
    }

    #[test]
    fn a_ratio_is_taken_round_by_round() {
        // The machine became twice as slow in the second round; the ratio does not notice.
        let ratio = Figure::ratio(&[Some(20.0), Some(40.0), None], &[Some(10.0), Some(20.0), Some(30.0)]);
        assert_eq!(ratio, Some(Figure { median: 2.0, min: 2.0, max: 2.0 }));
        assert_eq!(Figure::ratio(&[Some(1.0)], &[Some(0.0)]), None);
        assert_eq!(Figure::ratio(&[None], &[Some(1.0)]), None);
    }

    #[test]
    fn the_spread_is_a_share_of_the_median() {
        assert!((Figure { median: 10.0, min: 9.0, max: 12.0 }.spread() - 0.3).abs() < 1e-9);
        assert_eq!(Figure { median: 0.0, min: 0.0, max: 0.0 }.spread(), 0.0);
    }
}
