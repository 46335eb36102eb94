// What the scripts of the list scenarios share: all books, once or `-e TIMES=10` times in a row.
import { BOOKS, sku } from './lines.js';
import { whole } from './options.js';

const TIMES = whole('TIMES', 1, 1000);

export const SCENARIO = TIMES === 1 ? `list-${BOOKS}` : `list-${BOOKS}-x${TIMES}`;

/**
 * @template Reply
 * @param {() => Reply} call
 * @returns {Reply[]} the replies to one call after the other
 */
export function inARow(call) {
  const replies = [];
  for (let i = 0; i < TIMES; i += 1) replies.push(call());
  return replies;
}

/** @param {any[]} books */
export function areAll(books) {
  return books.length === BOOKS && books[BOOKS - 1].sku === sku(BOOKS);
}
