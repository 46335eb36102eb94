// The thread of one virtual user.
import { parentPort, workerData } from 'node:worker_threads';
import { ask } from './ask.mjs';
import { loadScript } from './load.mjs';
import { state, sample } from './state.mjs';

const { id, script, env } = workerData;
state.id = id;

let exported;
try {
  exported = await loadScript(script, env);
  const options = JSON.parse(JSON.stringify(exported.namespace.options));
  const parts = Object.keys(exported.namespace).filter((name) => typeof exported.namespace[name] === 'function');
  state.inInit = false;
  // Starts the thread for networking, so that no operation waits for it.
  ask('http', []);
  parentPort.postMessage({ result: { options, parts, metrics: [...state.metrics] } });
} catch (error) {
  parentPort.postMessage({ error: `${script}: ${error}` });
}

parentPort.on('message', async ({ part, argument }) => {
  try {
    const result = part === 'iterate' ? await iterate(argument) : exported.namespace[part](argument);
    const samples = state.samples.splice(0);
    parentPort.postMessage(part === 'iterate' ? { result: samples } : { result, samples });
  } catch (error) {
    parentPort.postMessage({ error: `${script}: ${part}: ${error.stack || error}` });
  }
});

/** Exceptions end an iteration, not the run, as in k6. */
async function iterate({ scenario, share, stopAt, data }) {
  state.scenario = scenario;
  for (let i = 0; i < share && Date.now() < stopAt; i += 1) {
    state.iteration = i;
    exported.context.__ITER = i;
    const began = performance.now();
    try {
      await exported.namespace.default(data);
    } catch (error) {
      console.error(String(error.stack || error));
    }
    // As in k6, what went over the wire is counted at the end, under the tags of that moment.
    const { sent, received } = state.takeBytes();
    sample('data_sent', sent);
    sample('data_received', received);
    sample('iterations', 1);
    sample('iteration_duration', performance.now() - began);
  }
}
