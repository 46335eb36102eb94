// What the scripts of the bulk and page scenarios share: a thousand books that are there, and a thousand new ones.
import exec from 'k6/execution';
import http from 'k6/http';
import { sku } from './lines.js';
import { whole } from './options.js';
import { decoded } from './rest.js';
import { REST } from './targets.js';

/** Books of one operation. */
export const COUNT = 1000;

/** Runs once before everything: a server with fewer books can't do what is measured. */
export function setup() {
  const reply = decoded(http.get(`${REST}/api/v1/books/${COUNT}`));
  if (reply.body.id !== COUNT) {
    throw new Error(`the server has no book ${COUNT}: start it with --books ${COUNT} (${REST} answered ${reply.status})`);
  }
}

/** Books in one message of a stream. */
export const BATCH = whole('BATCH', 100, COUNT);

/** @param {any[]} books */
export function areAll(books) {
  return books.length === COUNT && books[0].sku === sku(1) && books[COUNT - 1].sku === sku(COUNT);
}

// Beyond all seeded books: at most 2,000,000 of them.
const FIRST_NEW = 100000000;

/** A thousand books that the server doesn't have, as the contract spells them. */
export function newBooks() {
  const first = FIRST_NEW + exec.vu.idInTest * COUNT;
  return Array.from({ length: COUNT }, (_, i) => ({
    sku: sku(first + i),
    title: `Uploaded ${first + i}`,
    authorId: 1 + (i % 10),
    price: { amountMinor: 1499, currency: 'EUR' },
  }));
}

/**
 * @param {any} report
 * @param {any} count of the books that could be added
 */
export function wereRight(report, count) {
  return Number(report.importedCount) === count && Number(report.refusedCount) === 0;
}
