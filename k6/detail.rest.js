// The book-detail screen by plain REST: three requests at once, then the author, who is known only then.
import http from 'k6/http';
import { isDetail } from './detail.js';
import { BOOK, REVIEWS } from './lines.js';
import { operation } from './operation.js';
import { decoded } from './rest.js';
import { summary } from './summary.js';
import { REST } from './targets.js';

export { options } from './options.js';
export { teardown } from './operation.js';
export const handleSummary = summary('detail', 'rest');

const AT_ONCE = [
  `${REST}/api/v1/books/${BOOK}`,
  `${REST}/api/v1/books/${BOOK}/stock`,
  `${REST}/api/v1/books/${BOOK}/reviews?limit=${REVIEWS}`,
];

export default operation(
  () => {
    const [book, stock, reviews] = http.batch(AT_ONCE).map(decoded);
    const author = decoded(http.get(`${REST}/api/v1/authors/${book.body.authorId}`));
    return { book, stock, reviews, author };
  },
  {
    'all four are 200': ({ book, stock, reviews, author }) =>
      [book, stock, reviews, author].every((reply) => reply.status === 200),
    'the screen is whole': ({ book, stock, reviews, author }) =>
      author.body.id === book.body.authorId &&
      isDetail(book.body, author.body, stock.body.inStock, reviews.body.reviews),
  }
);
