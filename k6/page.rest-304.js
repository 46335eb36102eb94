// A page of books that the caller has already, by REST: it asks whether it is still right, and it is.
import http from 'k6/http';
import { setup as enoughBooks } from './bulk.js';
import { operation } from './operation.js';
import { URL } from './page.js';
import { summary } from './summary.js';

export { options } from './options.js';
export { teardown } from './operation.js';
export const handleSummary = summary('page', 'rest-304');

/** The tag of the page goes to every user. */
export function setup() {
  enoughBooks();
  return { tag: http.get(URL).headers.Etag || '' };
}

export default operation((/** @type {{ tag: string }} */ data) => http.get(URL, { headers: { 'If-None-Match': data.tag } }), {
  'status is 304': (reply) => reply.status === 304,
  'nothing is sent again': (reply) => !reply.body,
});
