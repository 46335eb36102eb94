// What an operation is, the same in every style: from before its first request is made until its last reply is read
// into values. k6's own durations leave that out in part, and each style another part, so they don't compare.
import { check } from 'k6';
import exec from 'k6/execution';
import http from 'k6/http';
import { Counter, Gauge, Trend } from 'k6/metrics';
import { MEASURED, WARMUP_MS } from './options.js';
import { METRICS } from './targets.js';

/** Streams of gRPC: k6 counts other requests by itself. */
export const calls = new Counter('stream_calls');

const duration = new Trend('operation_duration', true);
// Its least and its greatest value are the start and the end of what was counted.
const measuredAt = new Gauge('measured_at');
const cpuBefore = new Gauge('server_cpu_before');
const cpuAfter = new Gauge('server_cpu_after');

/** @typedef {'warming up' | 'warm' | 'measuring'} Phase */
let phase = /** @type {Phase} */ ('warming up');
let complained = false;

/**
 * The function that each virtual user runs again and again.
 *
 * A reply that is not right is no operation: it fails the run.
 * @template Reply
 * @template Data
 * @param {(data: Data) => Reply} call does the operation and returns what it got; `data` is what setup returned
 * @param {{ [what: string]: (reply: Reply) => boolean }} checks what must hold of it
 */
export function operation(call, checks) {
  return (/** @type {Data} */ data) => {
    if (!begins()) return;
    const began = now();
    try {
      ended(call(data), began, checks);
    } catch (error) {
      failed(error);
    }
  };
}

/**
 * As `operation`, for one whose reply comes later.
 * @template Reply
 * @param {() => Promise<Reply>} call
 * @param {{ [what: string]: (reply: Reply) => boolean }} checks
 */
export function operationLater(call, checks) {
  return async () => {
    if (!begins()) return;
    const began = now();
    try {
      ended(await call(), began, checks);
    } catch (error) {
      failed(error);
    }
  };
}

/** @returns {boolean} whether this iteration does the operation */
function begins() {
  if (phase === 'warming up' && Date.now() >= exec.scenario.startTime + WARMUP_MS) {
    phase = 'warm';
    if (exec.vu.idInTest === 1) {
      // The bytes of an iteration are counted at its end: those of this request must not be an operation's.
      cpuSeconds(cpuBefore);
      return false;
    }
  }
  if (phase === 'warm') {
    phase = 'measuring';
    exec.vu.metrics.tags.phase = MEASURED.phase;
    measuredAt.add(now());
  }
  return true;
}

/**
 * @template Reply
 * @param {Reply} reply
 * @param {number} began
 * @param {{ [what: string]: (reply: Reply) => boolean }} checks
 */
function ended(reply, began, checks) {
  const at = now();
  if (check(reply, checks) && phase === 'measuring') {
    duration.add(at - began);
    measuredAt.add(at);
  }
}

/** @param {unknown} error */
function failed(error) {
  check(error, { 'nothing is thrown': () => false });
  if (!complained) console.error(String(error));
  complained = true;
}

/** Reads the servers' CPU time once more when everyone is done. */
export function teardown() {
  cpuSeconds(cpuAfter);
}

/** Milliseconds since the run began, in parts of them: the clock of `Date` knows whole ones only. */
function now() {
  return exec.instance.currentTestRunDuration;
}

/** @param {Gauge} gauge set to the sum over all processes; not set when one of them doesn't tell */
function cpuSeconds(gauge) {
  let sum = 0;
  for (const url of METRICS) {
    const reply = http.get(url);
    const found = /^process_cpu_seconds_total(?:\{[^}]*\})? (\S+)/m.exec(String(reply.body));
    if (reply.status !== 200 || !found) return;
    sum += Number(found[1]);
  }
  gauge.add(sum);
}
