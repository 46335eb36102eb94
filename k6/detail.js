// What a right reply to the book-detail screen holds, whatever the style.
import { BOOK, REVIEWS, sku } from './lines.js';

/**
 * @param {any} book
 * @param {any} author
 * @param {number} inStock
 * @param {any[]} reviews
 */
export function isDetail(book, author, inStock, reviews) {
  return (
    book.id === BOOK &&
    book.sku === sku(BOOK) &&
    author.name.length > 0 &&
    inStock >= 0 &&
    reviews.length === REVIEWS &&
    reviews.every((review) => review.text.length > 0)
  );
}

/** @param {any} book as GraphQL nests it */
export function isNestedDetail(book) {
  return isDetail(book, book.author, book.stock.inStock, book.reviews);
}
