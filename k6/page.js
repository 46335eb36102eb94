// What the scripts of the page scenario share: 200 books with all that belongs to them, some 200 KB of JSON.
import { sku } from './lines.js';
import { REST } from './targets.js';

export const PAGE = 200;
export const REVIEWS = 4;

export const URL = `${REST}/api/v1/screens/catalog?page_size=${PAGE}&reviews=${REVIEWS}`;

/** @param {any[]} details */
export function isWhole(details) {
  const last = details[PAGE - 1];
  return details.length === PAGE && last.book.sku === sku(PAGE) && last.reviews.length === REVIEWS;
}
