// Runs a k6 script without k6, as far as the scripts here need it: what it has of k6 is in modules.mjs, and anything
// else fails. It is no load generator: it shows that the scripts work and that they notice what is wrong.
//   node k6/test/run.mjs SCRIPT [-e KEY=VALUE]... [--iterations N] [--vus N]
// Without --iterations it runs for the time that the script's options say. Exits as k6 does: 99 when a threshold is
// crossed, 107 when the script throws while it is loaded or in setup or teardown.
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { Metrics } from './metrics.mjs';

const THRESHOLDS_CROSSED = 99;
const INVALID_CONFIG = 104;
const SCRIPT_EXCEPTION = 107;

async function main(args) {
  const { script, env, iterations, vus } = parse(args);
  const runner = new User(0, script, env);
  const users = [];
  try {
    const { options, metrics: declared, parts } = await runner.ready;
    const metrics = new Metrics(options, declared);
    const load = scenarioOf(options);
    const count = vus || (iterations ? 1 : load.vus);
    const data = parts.includes('setup') ? await runner.ask('setup') : undefined;

    for (let id = 1; id <= count; id += 1) users.push(new User(id, script, env));
    await Promise.all(users.map((user) => user.ready));
    const startTime = Date.now();
    const stopAt = iterations ? Infinity : startTime + load.ms;
    const share = iterations ? Math.ceil(iterations / count) : Infinity;
    const scenario = { name: load.name, executor: load.executor, startTime };
    const samples = await Promise.all(users.map((user) => user.ask('iterate', { scenario, share, stopAt, data })));
    const lasted = Date.now() - startTime;

    if (parts.includes('teardown')) await runner.ask('teardown', data);
    metrics.add(runner.samples.concat(...samples));
    const crossed = metrics.crossed(lasted);
    const summary = metrics.summary(lasted, crossed);
    if (parts.includes('handleSummary')) write(await runner.ask('handleSummary', summary));
    for (const threshold of crossed) console.error(`threshold crossed: ${threshold}`);
    return crossed.length > 0 ? THRESHOLDS_CROSSED : 0;
  } catch (error) {
    console.error(error.message);
    return error.invalidConfig ? INVALID_CONFIG : SCRIPT_EXCEPTION;
  } finally {
    await Promise.all([runner, ...users].map((user) => user.worker.terminate()));
  }
}

/** A virtual user: a thread with the script loaded for itself. Number 0 runs setup, teardown and handleSummary. */
class User {
  samples = [];

  constructor(id, script, env) {
    this.worker = new Worker(new URL('vu.mjs', import.meta.url), {
      workerData: { id, script, env },
      execArgv: ['--experimental-vm-modules', '--no-warnings'],
    });
    this.worker.on('error', (error) => this.settle({ error: error.message }));
    this.worker.on('message', (message) => this.settle(message));
    this.ready = this.reply();
  }

  reply() {
    return new Promise((resolve, reject) => {
      this.settle = ({ error, result, samples }) => {
        this.samples.push(...(samples || []));
        return error === undefined ? resolve(result) : reject(new Error(error));
      };
    });
  }

  /** Runs a part of the script. The samples of `iterate` are its result. */
  async ask(part, argument) {
    this.worker.postMessage({ part, argument });
    return this.reply();
  }
}

function parse(args) {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      env: { type: 'string', short: 'e', multiple: true, default: [] },
      iterations: { type: 'string', short: 'i' },
      vus: { type: 'string', short: 'u' },
      quiet: { type: 'boolean', short: 'q' },
    },
  });
  const [script, ...rest] = positionals[0] === 'run' ? positionals.slice(1) : positionals;
  if (!script || rest.length > 0) throw new Error('usage: run.mjs [run] SCRIPT [-e KEY=VALUE]... [--iterations N] [--vus N]');
  const env = { ...process.env };
  for (const pair of values.env) {
    const at = pair.indexOf('=');
    env[pair.slice(0, at)] = pair.slice(at + 1);
  }
  return { script, env, iterations: Number(values.iterations || 0), vus: Number(values.vus || 0) };
}

function scenarioOf(options) {
  const [[name, { executor, vus, duration }], ...more] = Object.entries(options.scenarios);
  const ms = /^([\d.]+)ms$/.exec(duration);
  if (more.length > 0 || executor !== 'constant-vus' || !ms) {
    throw new Error('the stand-in has one scenario, of the executor constant-vus, whose duration is in ms');
  }
  return { name, executor, vus, ms: Number(ms[1]) };
}

function write(outputs) {
  for (const [where, text] of Object.entries(outputs)) {
    if (where === 'stdout' || where === 'stderr') process[where].write(text);
    else writeFileSync(where, text);
  }
}

process.exitCode = await main(process.argv.slice(2));
