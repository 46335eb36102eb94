// A thousand new books in one upload by REST: as JSON, or with `-e NDJSON=1` as lines. They are checked, not added: a
// store would fill up.
import http from 'k6/http';
import { COUNT, newBooks, wereRight } from './bulk.js';
import { operation } from './operation.js';
import { JSON_BODY, decoded } from './rest.js';
import { summary } from './summary.js';
import { REST } from './targets.js';

export { options } from './options.js';
export { setup } from './bulk.js';
export { teardown } from './operation.js';

const LINES = Boolean(__ENV.NDJSON) && __ENV.NDJSON !== '0';
export const handleSummary = summary('bulk-post', LINES ? 'rest-ndjson' : 'rest');

const URL = `${REST}/api/v1/books/import?validate_only=true`;
const PARAMS = LINES ? { headers: { 'Content-Type': 'application/x-ndjson' } } : JSON_BODY;

export default operation(() => decoded(http.post(URL, upload(), PARAMS)), {
  'status is 200': (reply) => reply.status === 200,
  'all books are right': (reply) => wereRight(reply.body, COUNT),
});

function upload() {
  const books = newBooks();
  return LINES ? books.map((book) => `${JSON.stringify(book)}\n`).join('') : JSON.stringify({ books });
}
