// One line for people, and the same figures as JSON and Markdown under k6/results/, where k6 doesn't make folders.
import { DURATION_MS, VUS, WARMUP_MS } from './options.js';
import { TARGET } from './targets.js';

const RESULTS = __ENV.RESULTS || 'k6/results';

/**
 * @param {string} scenario as `bookstore compare` names it
 * @param {string} style
 * @returns {(data: any) => { [where: string]: string }} what k6 calls at the end
 */
export function summary(scenario, style) {
  return (data) => {
    const figures = measured(data.metrics);
    const knobs = { vus: VUS, duration_ms: DURATION_MS, warmup_ms: WARMUP_MS, target: TARGET };
    const report = Object.assign({ scenario, style }, figures, { failures: failures(data), knobs });
    const file = `${RESULTS}/${scenario}.${style}`;
    return {
      stdout: `${line(report)}\n`,
      [`${file}.json`]: `${JSON.stringify(report, null, 2)}\n`,
      [`${file}.md`]: table(report),
    };
  };
}

/**
 * @param {any} metrics of k6
 * @returns figures of the counted operations, null where there is none
 */
function measured(metrics) {
  /** @type {(metric: string, value: string) => number | null} */
  const of = (metric, value) => {
    const found = metrics[metric] && metrics[metric].values[value];
    return typeof found === 'number' && isFinite(found) ? found : null;
  };
  const operations = of('operation_duration', 'count') || 0;
  const ms = (of('measured_at', 'max') || 0) - (of('measured_at', 'min') || 0);
  const before = of('server_cpu_before', 'value');
  const after = of('server_cpu_after', 'value');
  /** @type {(total: number | null) => number | null} */
  const perOperation = (total) => (total === null || operations === 0 ? null : total / operations);
  /** @type {(value: string) => number | null} */
  const latency = (value) => (operations === 0 ? null : of('operation_duration', value));
  return {
    operations,
    operations_per_s: ms > 0 ? (operations * 1000) / ms : null,
    p50_ms: latency('med'),
    p95_ms: latency('p(95)'),
    p99_ms: latency('p(99)'),
    requests_per_op: perOperation(
      (of('http_reqs{phase:measured}', 'count') || 0) +
        (of('grpc_req_duration{phase:measured}', 'count') || 0) +
        (of('stream_calls{phase:measured}', 'count') || 0)
    ),
    sent_bytes_per_op: perOperation(of('data_sent{phase:measured}', 'count')),
    received_bytes_per_op: perOperation(of('data_received{phase:measured}', 'count')),
    server_cpu_us_per_op: perOperation(before === null || after === null ? null : (after - before) * 1e6),
  };
}

/** @param {any} data of k6 */
function failures(data) {
  /** @type {{ name: string, passes: number, fails: number }[]} */
  const checks = data.root_group.checks;
  return checks.filter((c) => c.fails > 0).map((c) => `${c.name}: ${c.fails} of ${c.passes + c.fails} failed`);
}

/** @typedef {ReturnType<typeof measured> & { scenario: string, style: string, failures: string[] }} Report */

/** @param {Report} r */
function line(r) {
  const figures = [
    `${number(r.operations_per_s, 0)} op/s`,
    `p50 ${number(r.p50_ms, 2)} ms`,
    `p95 ${number(r.p95_ms, 2)} ms`,
    `${number(r.requests_per_op, 2)} requests/op`,
    `${number(r.sent_bytes_per_op, 0)} B sent/op`,
    `${number(r.received_bytes_per_op, 0)} B received/op`,
    `server CPU ${number(r.server_cpu_us_per_op, 1)} µs/op`,
  ];
  return [`${r.scenario} ${r.style}: ${figures.join(', ')}`].concat(r.failures.map((f) => `  wrong: ${f}`)).join('\n');
}

/** @param {Report} r */
function table(r) {
  const row = [
    r.scenario,
    r.style,
    number(r.operations_per_s, 0),
    number(r.p50_ms, 2),
    number(r.p95_ms, 2),
    number(r.requests_per_op, 2),
    number(r.sent_bytes_per_op, 0),
    number(r.received_bytes_per_op, 0),
    number(r.server_cpu_us_per_op, 1),
  ];
  return `| scenario | style | op/s | p50 ms | p95 ms | requests/op | sent B/op | received B/op | server CPU µs/op |
|---|---|---:|---:|---:|---:|---:|---:|---:|
| ${row.join(' | ')} |
`;
}

/**
 * @param {number | null} value
 * @param {number} places
 */
function number(value, places) {
  return value === null ? 'n/a' : value.toFixed(places);
}
