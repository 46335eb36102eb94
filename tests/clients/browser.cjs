// Opens GraphiQL and Swagger UI in headless Chromium, runs one query in each, and a gRPC-Web call from a page of
// another origin. Fails when a page asks any host but loopback for anything.
'use strict';
const assert = require('node:assert/strict');
const fs = require('node:fs');
const http = require('node:http');
const os = require('node:os');
const path = require('node:path');
const { chromium } = require('playwright-core');

const suite = process.argv[2];

async function graphiql(page) {
  await page.goto(`${suite}/graphiql#BookDetail`);
  await page.locator('#operations').getByRole('button', { name: 'BookDetail', exact: true }).click();
  await page.locator('.graphiql-execute-button').click();
  await page.waitForFunction(() => document.querySelector('.result-window')?.textContent.includes('inStock'));
  const operations = await page.locator('#operations button').count();
  assert.ok(operations >= 10, `only ${operations} operations to click`);
}

async function swagger(page) {
  await page.goto(`${suite}/docs`);
  const operation = page.locator('[id="operations-books-get_book"]');
  await operation.locator('.opblock-summary-control').click();
  const id = operation.locator('tr[data-param-name="bookId"] input');
  await id.fill('1');
  await operation.getByRole('button', { name: 'Execute' }).click();
  const reply = operation.locator('.live-responses-table .response-col_status', { hasText: '200' });
  await reply.first().waitFor();
}

async function grpcWeb(page) {
  const other = http.createServer((_, response) => response.end('<title>another origin</title>'));
  await new Promise((resolve) => other.listen(0, '127.0.0.1', resolve));
  try {
    await page.goto(`http://127.0.0.1:${other.address().port}/`);
    const reply = await page.evaluate(async (suite) => {
      const call = async (method, body) => {
        const response = await fetch(`${suite}/bookstore.catalog.v1.CatalogService/${method}`, {
          method: 'POST',
          headers: { 'content-type': 'application/grpc-web+proto', 'x-grpc-web': '1' },
          body: new Uint8Array(body),
        });
        const bytes = new Uint8Array(await response.arrayBuffer());
        return { bytes: bytes.length, first: bytes[0], status: response.headers.get('grpc-status') };
      };
      return {
        found: await call('GetBookDetail', [0, 0, 0, 0, 4, 8, 1, 16, 2]),
        missing: await call('GetBook', [0, 0, 0, 0, 3, 8, 0xe7, 0x07]),
      };
    }, suite);
    assert.equal(reply.found.first, 0);
    assert.ok(reply.found.bytes > 100);
    assert.equal(reply.missing.status, '5', 'the page must see the status of an error without messages');
  } finally {
    other.close();
  }
}

(async () => {
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'chromium-'));
  const browser = await chromium.launchPersistentContext(profile, {
    executablePath: '/usr/bin/chromium',
    headless: true,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync'],
  });
  const strangers = [];
  browser.on('request', (request) => {
    const url = new URL(request.url());
    if (!['127.0.0.1', ''].includes(url.hostname)) strangers.push(request.url());
  });
  try {
    for (const visit of [graphiql, swagger, grpcWeb]) {
      const page = await browser.newPage();
      page.setDefaultTimeout(20000);
      await visit(page);
      await page.close();
      console.log(`browser: ${visit.name} is right`);
    }
    assert.deepEqual(strangers, []);
  } finally {
    await browser.close();
    fs.rmSync(profile, { recursive: true, force: true });
  }
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
