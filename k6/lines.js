// Names of seeded data by the rules of proto/src/seed.rs, and of what is new.
import exec from 'k6/execution';

/** The book whose screen is asked for, and how many of its latest reviews. */
export const BOOK = 1;
export const REVIEWS = 2;

/** Books in a fresh suite. */
export const BOOKS = 50;

/**
 * The SKU of a seeded book: 979, the id in nine places, and the check digit of ISO 2108.
 * @param {number} book
 * @returns {string}
 */
export function sku(book) {
  const body = `979${String(book).padStart(9, '0')}`;
  let sum = 0;
  for (let i = 0; i < body.length; i += 1) sum += Number(body[i]) * (i % 2 === 0 ? 1 : 3);
  return `${body}${(10 - (sum % 10)) % 10}`;
}

/**
 * The id of a seeded order.
 * @param {number} number
 * @returns {string}
 */
export function seededOrder(number) {
  return `ord_${String(number).padStart(32, '0')}`;
}

/** @param {number} count one unit each of the first `count` books */
export function lines(count) {
  return Array.from({ length: count }, (_, i) => ({ sku: sku(i + 1), quantity: 1 }));
}

// Differs from run to run, and each virtual user has its own.
const RUN = Date.now().toString(36) + Math.random().toString(36).slice(2, 8).padEnd(6, '0');
let given = 0;

/** An order id that was never used before. All are of one length, so that bytes compare. */
export function newOrderId() {
  given += 1;
  return `k6-${RUN}-${String(exec.vu.idInTest).padStart(5, '0')}-${String(given).padStart(9, '0')}`;
}
