// Calls the suite with @grpc/grpc-js and the .proto files.
'use strict';
const assert = require('node:assert/strict');
const path = require('node:path');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const root = path.join(__dirname, '..', '..', 'proto');
const definition = loader.loadSync('bookstore/catalog/v1/catalog.proto', { includeDirs: [root], keepCase: false });
const { CatalogService } = grpc.loadPackageDefinition(definition).bookstore.catalog.v1;
const client = new CatalogService(process.argv[2], grpc.credentials.createInsecure());
const deadline = () => ({ deadline: Date.now() + 5000 });

const unary = (method, request) =>
  new Promise((resolve, reject) =>
    client[method](request, deadline(), (error, reply) => (error ? reject(error) : resolve(reply))),
  );

(async () => {
  const detail = await unary('getBookDetail', { bookId: 1, reviewCount: 2 });
  assert.equal(detail.book.id, 1);
  assert.equal(detail.reviews.length, 2);

  const books = [];
  for await (const reply of client.streamBooks({ limit: 5 }, deadline())) books.push(reply.book.id);
  assert.deepEqual(books, [1, 2, 3, 4, 5]);

  const search = client.searchBooks(deadline());
  const answers = [];
  search.on('data', (reply) => answers.push(reply.query));
  search.write({ query: detail.book.title });
  search.write({ query: 'no such words' });
  search.end();
  await new Promise((resolve, reject) => search.on('end', resolve).on('error', reject));
  assert.deepEqual(answers, [detail.book.title, 'no such words']);

  await assert.rejects(unary('getBook', { bookId: 999 }), { code: grpc.status.NOT_FOUND });
  client.close();
  console.log('grpc-js: a unary call, a stream, a dialogue and a refusal are right');
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
