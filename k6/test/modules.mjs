// What the stand-in has of k6, by module:
//   k6             check, fail, sleep
//   k6/http        get, post, batch; params headers and responseType; replies with status, body, headers, error
//   k6/net/grpc    Client with load, connect (plaintext, timeout in ms), invoke, close; StatusOK;
//                  Stream with on, write, end, whose messages go out together at the end
//   k6/metrics     Counter, Gauge, Rate, Trend
//   k6/execution   vu.idInTest, vu.iterationInInstance, vu.metrics.tags; scenario; instance.currentTestRunDuration
//   k6/crypto      sha256
// and beside them open (text), __ENV, __VU, __ITER, console.error, setup, teardown, handleSummary, and of the options
// one scenario (constant-vus), thresholds and summaryTrendStats.
import { createHash } from 'node:crypto';
import { dirname, resolve } from 'node:path';
import { workerData } from 'node:worker_threads';
import { ask } from './ask.mjs';
import { insideInit, outsideInit, sample, state } from './state.mjs';

const check = (value, sets, tags) => {
  let all = true;
  for (const [name, holds] of Object.entries(sets)) {
    let thrown;
    let right = false;
    try {
      right = Boolean(typeof holds === 'function' ? holds(value) : holds);
    } catch (error) {
      thrown = { error };
    }
    sample('checks', right, { ...tags, check: name });
    if (thrown) throw thrown.error;
    all = all && right;
  }
  return all;
};

const fail = (message) => {
  throw new Error(message);
};

const sleep = (seconds) => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, seconds * 1000);
};

const http = {
  get: (url, params) => http.batch([['GET', url, null, params]])[0],
  post: (url, body, params) => http.batch([['POST', url, body, params]])[0],
  batch: (requests) => {
    outsideInit('making HTTP requests');
    const asked = Array.from(requests, (request) => {
      const [method, url, body, params] = typeof request === 'string' ? ['GET', request] : request;
      const { headers, responseType, ...unknown } = params || {};
      only('HTTP params', unknown);
      if (body && typeof body !== 'string' && typeof body.byteLength !== 'number') throw new Error('the stand-in has no forms');
      return { method, url, body: body || undefined, headers: { ...headers }, binary: responseType === 'binary' };
    });
    return ask('http', asked).map((reply) => {
      sample('http_reqs', 1);
      sample('http_req_duration', reply.ms);
      sample('http_req_failed', reply.status < 200 || reply.status >= 400);
      return reply;
    });
  },
};

class Client {
  id = ask('grpc-client');

  load(importPaths, ...files) {
    insideInit('load');
    const from = dirname(resolve(workerData.script));
    ask('grpc-load', { id: this.id, importPaths: importPaths.map((path) => resolve(from, path)), files });
  }

  connect(address, { plaintext, timeout = 60_000, ...unknown } = {}) {
    outsideInit('connecting to a gRPC server');
    only('gRPC connect params', unknown);
    if (!plaintext) throw new Error('the stand-in has no TLS');
    ask('grpc-connect', { id: this.id, address, timeout });
    return true;
  }

  invoke(method, request, params) {
    outsideInit('invoking RPC methods');
    only('gRPC params', params || {});
    // By way of JSON, as in k6: what JSON can't say gets lost here, too.
    const { ms, ...reply } = ask('grpc-invoke', { id: this.id, method, request: JSON.parse(JSON.stringify(request)) });
    sample('grpc_req_duration', ms);
    return reply;
  }

  close() {
    ask('grpc-close', { id: this.id });
  }
}

class Stream {
  #client;
  #method;
  #listeners = { data: [], error: [], end: [] };
  #messages = [];

  constructor(client, method, params) {
    outsideInit('opening a stream');
    only('gRPC params', params || {});
    this.#client = client;
    this.#method = method;
  }

  on(event, listener) {
    if (!this.#listeners[event]) throw new Error(`a stream has no event ${event}`);
    this.#listeners[event].push(listener);
  }

  write(request) {
    this.#messages.push(JSON.parse(JSON.stringify(request)));
  }

  end() {
    // Later, as in k6: whoever called goes on first.
    setImmediate(() => {
      const tell = (event, value) => this.#listeners[event].forEach((listener) => listener(value, { ts: Date.now() }));
      try {
        const request = { id: this.#client.id, method: this.#method, messages: this.#messages };
        const { messages, error } = ask('grpc-stream', request);
        messages.forEach((message) => tell('data', message));
        if (error) tell('error', error);
      } catch (error) {
        tell('error', { code: 2, message: error.message, details: [] });
      }
      tell('end');
    });
  }
}

class Metric {
  constructor(name) {
    insideInit('declaring a metric');
    this.name = name;
    state.metrics.set(name, this.constructor.name.toLowerCase());
  }

  add(value, tags) {
    outsideInit('adding to a metric');
    if (typeof value !== 'boolean' && !Number.isFinite(value)) throw new Error(`${this.name}: not a number: ${value}`);
    sample(this.name, value, tags);
  }
}
class Counter extends Metric {}
class Gauge extends Metric {}
class Rate extends Metric {}
class Trend extends Metric {}

const guarded = (what, members) => ({
  get() {
    outsideInit(`getting ${what} information`);
    return members;
  },
  enumerable: true,
});

const execution = Object.defineProperties(
  {},
  {
    vu: guarded('VU', {
      get idInTest() {
        return state.id;
      },
      get iterationInInstance() {
        return state.iteration;
      },
      metrics: { tags: state.tags },
    }),
    scenario: guarded('scenario', {
      get name() {
        return state.scenario.name;
      },
      get startTime() {
        return state.scenario.startTime;
      },
    }),
    instance: guarded('instance', {
      get currentTestRunDuration() {
        return performance.timeOrigin + performance.now() - state.scenario.startTime;
      },
    }),
  }
);

const sha256 = (input, encoding) => {
  if (encoding !== 'hex' && encoding !== 'base64') throw new Error(`the stand-in has no output encoding ${encoding}`);
  return createHash('sha256').update(input).digest(encoding);
};

export const MODULES = {
  k6: { check, fail, sleep },
  'k6/http': http,
  'k6/net/grpc': { Client, Stream, StatusOK: 0 },
  'k6/metrics': { Counter, Gauge, Rate, Trend },
  'k6/execution': execution,
  'k6/crypto': { sha256 },
};

function only(what, unknown) {
  const [name] = Object.keys(unknown);
  if (name !== undefined) throw new Error(`the stand-in has no ${name} among its ${what}`);
}
