// The load, the same in every script, and what makes k6 exit with 99.

/**
 * Reads a duration such as `30s`, `500ms` or `1m30s`.
 * @param {string} text
 * @returns {number} milliseconds
 */
export function milliseconds(text) {
  const units = { ms: 1, s: 1000, m: 60000, h: 3600000 };
  const parts = text.match(/\d+(\.\d+)?(ms|s|m|h)/g) || [];
  if (text === '' || parts.join('') !== text) throw new Error(`not a duration: ${text}`);
  return parts.reduce((sum, part) => {
    const unit = /** @type {keyof typeof units} */ (part.replace(/[\d.]+/, ''));
    return sum + parseFloat(part) * units[unit];
  }, 0);
}

/**
 * Reads a knob that is a whole number.
 * @param {string} name
 * @param {number} byDefault
 * @param {number} most
 * @returns {number} from 1 to `most`
 */
export function whole(name, byDefault, most) {
  const value = Number(__ENV[name] || byDefault);
  if (!(value >= 1 && value <= most && value % 1 === 0)) {
    throw new Error(`${name} must be a whole number from 1 to ${most}, was ${__ENV[name]}`);
  }
  return value;
}

/** Virtual users, each with connections of its own, each with one operation at a time. */
export const VUS = whole('VUS', 20, 10000);

/** Milliseconds at the start in which nothing is counted. */
export const WARMUP_MS = milliseconds(__ENV.WARMUP || '5s');

/** Milliseconds in which everything is counted. */
export const DURATION_MS = milliseconds(__ENV.DURATION || '30s');

/** Written on what belongs to counted operations. k6 keeps one sum for each tag that a threshold names. */
export const MEASURED = { phase: 'measured' };

export const options = {
  scenarios: {
    // One scenario, so that the users and their connections outlive the warm-up.
    load: {
      executor: /** @type {const} */ ('constant-vus'),
      vus: VUS,
      duration: `${WARMUP_MS + DURATION_MS}ms`,
    },
  },
  thresholds: {
    checks: ['rate==1'],
    // A script that never got to count anything has failed, too.
    operation_duration: ['max>0'],
    // These always hold: they make k6 keep the sums for the summary.
    'data_sent{phase:measured}': ['count>=0'],
    'data_received{phase:measured}': ['count>=0'],
    'http_reqs{phase:measured}': ['count>=0'],
    'grpc_req_duration{phase:measured}': ['max>=0'],
    'stream_calls{phase:measured}': ['count>=0'],
  },
  summaryTrendStats: ['count', 'min', 'avg', 'med', 'p(95)', 'p(99)', 'max'],
};
