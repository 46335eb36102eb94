//! Times in the form of RFC 3339.

use prost_types::Timestamp;
use serde::{Serialize, Serializer};

/// A time in UTC with milliseconds: `2026-11-30T12:00:00.000Z`, always 24 bytes, so that text order is time order.
#[derive(Debug)]
pub(crate) struct Time(Timestamp);

impl Time {
    /// The time of a message, if it has one.
    pub(crate) fn of(timestamp: &Option<Timestamp>) -> Option<Self> {
        timestamp.map(Self)
    }

    /// The text; `None` for years that four digits can't tell.
    ///
    /// An order's history has hundreds of times, and `fmt` would be half the cost of writing it: hence digits by hand.
    fn digits(&self) -> Option<[u8; 24]> {
        let days = self.0.seconds.div_euclid(86_400);
        let second = u32::try_from(self.0.seconds.rem_euclid(86_400)).ok()?;
        let millis = u32::try_from(self.0.nanos).ok().filter(|&n| n < 1_000_000_000)? / 1_000_000;
        let (year, month, day) = date(days)?;
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let d = |n: u32| b'0' + (n % 10) as u8;
        #[rustfmt::skip]
        let text = [
            d(year / 1000), d(year / 100), d(year / 10), d(year), b'-',
            d(month / 10), d(month), b'-',
            d(day / 10), d(day), b'T',
            d(hour / 10), d(hour), b':',
            d(minute / 10), d(minute), b':',
            d(second / 10), d(second), b'.',
            d(millis / 100), d(millis / 10), d(millis), b'Z',
        ];
        Some(text)
    }
}

/// Year, month and day of a number of days since 1970-01-01, from March of the year 0 to the end of 9999.
///
/// Years are counted from March, so that the leap day is the last of its year and months have a regular length.
fn date(days: i64) -> Option<(u32, u32, u32)> {
    const DAYS_BEFORE_1970: i64 = 719_468;
    const DAYS_PER_400_YEARS: u32 = 146_097;
    let days = u32::try_from(days.checked_add(DAYS_BEFORE_1970)?).ok()?;
    let (era, of_era) = (days / DAYS_PER_400_YEARS, days % DAYS_PER_400_YEARS);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + u32::from(month <= 2);
    (year <= 9999).then_some((year, month, day))
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.digits() {
            Some(text) => serializer.serialize_str(std::str::from_utf8(&text).unwrap_or_default()),
            None => serializer.collect_str(&self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(seconds: i64, nanos: i32) -> String {
        serde_json::to_value(Time(Timestamp { seconds, nanos })).unwrap().as_str().unwrap().to_owned()
    }

    #[test]
    fn times_have_milliseconds_and_a_fixed_width() {
        for (seconds, nanos, expected) in [
            (0, 0, "1970-01-01T00:00:00.000Z"),
            (1_796_036_645, 123_999_999, "2026-11-30T11:04:05.123Z"),
            (951_782_400, 0, "2000-02-29T00:00:00.000Z"),
            (951_868_799, 0, "2000-02-29T23:59:59.000Z"),
            (-1, 999_000_000, "1969-12-31T23:59:59.999Z"),
            (253_402_300_799, 0, "9999-12-31T23:59:59.000Z"),
        ] {
            assert_eq!(text(seconds, nanos), expected);
        }
    }

    #[test]
    fn days_of_all_years_agree_with_the_formatter_of_the_message() {
        for day in (-719_468_i64..2_932_897).step_by(13) {
            let seconds = day * 86_400 + (day * 7919).rem_euclid(86_400);
            let timestamp = Timestamp { seconds, nanos: 1_000_000 };
            assert_eq!(Time(timestamp).digits().unwrap().as_slice(), timestamp.to_string().as_bytes());
        }
    }

    #[test]
    fn odd_times_are_written_all_the_same() {
        for (seconds, nanos) in [(i64::MAX, 0), (i64::MIN, 0), (0, -1), (0, i32::MAX), (253_402_300_800, 0)] {
            assert!(!text(seconds, nanos).is_empty());
        }
    }
}
