// The scripts against the suite, and against servers that are wrong.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { K6, RUN, RUNS, countingProxy, emptyGrpcServer, finished, httpServer, run, scripts, suite } from './helpers.mjs';

const CROSSED = 99;
const EXCEPTION = 107;
const NOWHERE = 'http://127.0.0.1:1/metrics';

const FIGURE = String.raw`\d+(\.\d+)?`;
const line = (name, cpu) => {
  const [scenario, style] = name.split(/\.(.*)/);
  return new RegExp(
    `^${scenario} ${style}: ${FIGURE} op/s, p50 ${FIGURE} ms, p95 ${FIGURE} ms, ${FIGURE} requests/op, ` +
      `${FIGURE} B sent/op, ${FIGURE} B received/op, server CPU ${cpu} µs/op\n$`
  );
};

describe('against the suite', { concurrency: 2 }, () => {
  let store;
  before(async () => {
    store = await suite('--reservation-ttl', '2', '--books', '1000');
  });
  after(() => store.stop());

  test('every script is run', () => {
    const run = new Set(RUNS.map(({ script }) => script));
    assert.deepEqual([...run].sort(), scripts().sort());
  });

  for (const { script, knobs, name } of RUNS) {
    test(`${name} works`, async () => {
      // One iteration of the first user reads the server's CPU time.
      const env = { ...store.targets, METRICS: NOWHERE, ...knobs };
      const { code, stdout, stderr, files } = await run(script, { env, iterations: 8, vus: 2 });
      assert.equal(code, 0, stdout + stderr);
      assert.match(stdout, line(name, 'n/a'));
      const report = JSON.parse(files[`${name}.json`]);
      assert.equal(report.operations, 7);
      assert.deepEqual(report.failures, []);
      const requests = { 'detail.rest': 4, 'list-50-x10.rest': 10, 'list-50-x10.grpc': 10 }[name] || 1;
      assert.equal(report.requests_per_op, requests);
      assert.ok(report.p50_ms > 0 && report.p50_ms <= report.p95_ms);
      assert.ok(report.sent_bytes_per_op > 0 && report.received_bytes_per_op > 0);
      assert.equal(report.server_cpu_us_per_op, null);
      assert.equal(files[`${name}.md`].split('\n').length, 4);
    });
  }

  test('what the servers told of their CPU time is summed up and shared out', async () => {
    let told = 100;
    const metrics = await httpServer((_, response) => {
      told += 1;
      response.end(`# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total ${told}.5\n`);
    });
    // Twice at the end of the warm-up, twice at the end: from 101.5 + 102.5 to 103.5 + 104.5 for 4 operations.
    const env = { ...store.targets, METRICS: `${metrics.url},${metrics.url}` };
    const { stdout, files } = await run('detail.rest-bff.js', { env, iterations: 5 });
    await metrics.stop();
    assert.equal(JSON.parse(files['detail.rest-bff.json']).server_cpu_us_per_op, 1e6);
    assert.match(stdout, line('detail.rest-bff', '1000000\\.0'));
  });

  test('each user opens one gRPC connection', async () => {
    const proxy = await countingProxy(store.targets.GRPC);
    const env = { GRPC: proxy.address, METRICS: NOWHERE, TIMES: '10' };
    const { code } = await run('list.grpc.js', { env, iterations: 9, vus: 3 });
    assert.equal(code, 0);
    assert.equal(proxy.connections(), 3);
    await proxy.stop();
  });

  test('run-all writes one table', async () => {
    const results = mkdtempSync(join(tmpdir(), 'k6-all-'));
    const knobs = { ...store.targets, METRICS: NOWHERE, RESULTS: results, ROUNDS: '2', WARMUP: '0s' };
    const args = Object.entries(knobs).flatMap(([key, value]) => ['-e', `${key}=${value}`]);
    const env = { ...process.env, K6: `${process.execPath} ${RUN} --iterations 3` };
    const { code, stderr } = await finished(spawn(join(K6, 'run-all.sh'), args, { cwd: '/', env }));
    assert.equal(code, 0, stderr);
    const rows = readFileSync(join(results, 'all.md'), 'utf8').trim().split('\n').slice(2);
    const names = rows.map((row) => row.split(' | ').slice(0, 2).join('.').replace('| ', ''));
    assert.deepEqual(names.sort(), RUNS.map(({ name }) => name).sort());
    for (const row of rows) assert.match(row, /^\|( [\w-]+ \|){2}( (\d+(\.\d+)?|n\/a) \|){7} \d+ to \d+ \|$/);
    rmSync(results, { recursive: true });
  });

  test('the scripts for many books say so when there are few', async () => {
    const small = await suite();
    for (const script of scripts().filter((name) => /^(bulk|page)/.test(name))) {
      const { code, stderr } = await run(script, { env: small.targets, iterations: 3 });
      assert.equal(code, EXCEPTION, script);
      assert.match(stderr, /the server has no book 1000: start it with --books 1000/);
    }
    await small.stop();
  });

  test('the suite without the books asked for fails the run', async () => {
    const small = await suite('--books', '10');
    const env = { ...small.targets, LINES: '50' };
    for (const script of ['reserve.rest.js', 'reserve.grpc.js', 'reserve.graphql.js', 'list.rest.js', 'list.grpc.js']) {
      const { code, stdout } = await run(script, { env, iterations: 3 });
      assert.equal(code, CROSSED, script);
      assert.match(stdout, /wrong: (status|all books)/);
    }
    await small.stop();
  });
});

describe('against servers that are wrong', { concurrency: 2 }, () => {
  const methods = [
    '/bookstore.inventory.v1.InventoryService/ReserveStock',
    '/bookstore.catalog.v1.CatalogService/GetBookDetail',
    '/bookstore.catalog.v1.CatalogService/ListBooks',
    '/bookstore.catalog.v1.CatalogService/ListBookDetails',
    '/bookstore.catalog.v1.CatalogService/StreamBooks',
    '/bookstore.catalog.v1.CatalogService/BatchCreateBooks',
    '/bookstore.catalog.v1.CatalogService/ImportBooks',
    '/bookstore.ordering.v1.OrderingService/GetOrder',
  ];
  let empty;
  let emptyGrpc;
  before(async () => {
    // It has a book 1000, so that scripts which need one begin.
    empty = await httpServer(({ url }, response) => response.end(url === '/api/v1/books/1000' ? '{"id":1000}' : '{}'));
    emptyGrpc = await emptyGrpcServer(methods);
  });
  after(async () => {
    await empty.stop();
    emptyGrpc.stop();
  });

  for (const script of scripts()) {
    test(`${script} notices replies that say nothing`, async () => {
      const env = { HTTP: empty.url, GRPC: emptyGrpc.address, METRICS: NOWHERE };
      const { code, stdout } = await run(script, { env, iterations: 3 });
      assert.equal(code, CROSSED);
      assert.match(stdout, /: n\/a op\/s, .*\n  wrong: /);
    });

    test(`${script} notices that nobody answers`, async () => {
      const env = { HTTP: 'http://127.0.0.1:1', GRPC: '127.0.0.1:1', METRICS: NOWHERE };
      const { code } = await run(script, { env, iterations: 3 });
      assert.equal(code, /^(bulk|page)/.test(script) ? EXCEPTION : CROSSED);
    });
  }

  test('a script that never gets to count fails', async () => {
    const env = { HTTP: empty.url, METRICS: NOWHERE };
    const { code, stderr } = await run('detail.rest.js', { env, iterations: 1 });
    assert.equal(code, CROSSED);
    assert.match(stderr, /threshold crossed: operation_duration/);
  });

  test('an unknown knob value is refused before anything is sent', async () => {
    for (const [script, env] of [
      ['reserve.rest.js', { LINES: '51' }],
      ['order.rest.js', { VIEW: 'all' }],
      ['list.rest.js', { TIMES: '0' }],
      ['list.rest.js', { TARGET: 'moon' }],
      ['list.rest.js', { DURATION: '30' }],
    ]) {
      const { code, stderr } = await run(script, { env, iterations: 1 });
      assert.equal(code, 107, stderr);
      assert.match(stderr, /must be|not a duration/);
    }
  });
});

describe('what is counted', () => {
  const SCREEN = {
    book: { id: 1, sku: '9790000000018', authorId: 1 },
    author: { id: 1, name: 'A' },
    stock: { inStock: 1 },
    reviews: [{ text: 'a' }, { text: 'b' }],
  };

  test('nothing of the warm-up is', async () => {
    let asked = 0;
    const server = await httpServer((_, response) => {
      asked += 1;
      response.end(JSON.stringify(SCREEN));
    });
    const env = { HTTP: server.url, METRICS: NOWHERE, DURATION: '1s' };
    const { code, files } = await run('detail.rest-bff.js', { env, vus: 2, warmup: '300ms' });
    await server.stop();
    assert.equal(code, 0);
    const report = JSON.parse(files['detail.rest-bff.json']);
    assert.ok(report.operations > 0);
    assert.ok(report.operations < asked, `${report.operations} of ${asked}`);
    assert.equal(report.requests_per_op, 1);
    assert.deepEqual(report.knobs, { vus: 20, duration_ms: 1000, warmup_ms: 300, target: 'up' });
  });

  test('the three requests of the screen by REST are made at once', async () => {
    const waiting = [];
    const server = await httpServer((request, response) => {
      const part = request.url.split(/[/?]/)[5];
      const body = request.url.includes('/authors/') ? SCREEN.author : { stock: SCREEN.stock, reviews: SCREEN }[part];
      const reply = () => response.end(JSON.stringify(body || SCREEN.book));
      if (request.url.includes('/authors/')) return reply();
      // Nobody is answered before all three have asked.
      waiting.push(reply);
      if (waiting.length === 3) waiting.splice(0).forEach((answer) => answer());
      return undefined;
    });
    const { code, stdout } = await run('detail.rest.js', { env: { HTTP: server.url, METRICS: NOWHERE }, iterations: 3 });
    await server.stop();
    assert.equal(code, 0, stdout);
  });

  test('an order id is never used twice', async () => {
    const ids = [];
    const server = await httpServer(async (request, response) => {
      let body = '';
      for await (const chunk of request) body += chunk;
      ids.push(JSON.parse(body).orderId);
      response.writeHead(201).end(JSON.stringify({ reservationId: 'rsv_1', state: 'HELD', expiresAt: 'soon' }));
    });
    const env = { HTTP: server.url, METRICS: NOWHERE };
    for (let i = 0; i < 2; i += 1) await run('reserve.rest.js', { env, iterations: 9, vus: 3 });
    await server.stop();
    assert.equal(ids.length, 2 * 8);
    assert.equal(new Set(ids).size, ids.length);
    for (const id of ids) assert.match(id, /^[A-Za-z0-9._:-]{1,64}$/);
    assert.equal(new Set(ids.map((id) => id.length)).size, 1);
  });

  test('a trailer that tells of an error fails the run', async () => {
    const detail = [0x0a, 2, 8, 1, 0x12, 0, 0x18, 1, 0x22, 0, 0x22, 0];
    const reply = (status) => {
      const trailers = Buffer.from(`grpc-status: ${status}\r\n`);
      return Buffer.from([0, 0, 0, 0, detail.length, ...detail, 0x80, 0, 0, 0, trailers.length, ...trailers]);
    };
    for (const [status, expected] of [[0, 0], [13, CROSSED]]) {
      const server = await httpServer((_, response) => response.end(reply(status)));
      const env = { HTTP: server.url, METRICS: NOWHERE };
      const { code, stdout } = await run('detail.grpc-web.js', { env, iterations: 3 });
      await server.stop();
      assert.equal(code, expected, stdout);
      if (status !== 0) assert.match(stdout, /wrong: grpc-status is 0: 2 of 2 failed/);
    }
  });
});
