// The documents of graphql/operations/, sent as text or by the hash of that text.
import { sha256 } from 'k6/crypto';
import http from 'k6/http';
import { JSON_BODY, decoded } from './rest.js';
import { GRAPHQL } from './targets.js';

const URL = `${GRAPHQL}/graphql`;

/**
 * @param {string} name of a file in graphql/operations/
 * @returns {string} its text, byte for byte: servers know persisted documents by its hash
 */
export function document(name) {
  return open(`../graphql/operations/${name}.graphql`);
}

/**
 * @param {string} text of a document
 * @param {object} variables
 */
export function send(text, variables) {
  return decoded(http.post(URL, JSON.stringify({ query: text, variables }), JSON_BODY));
}

/**
 * @param {string} text of a document
 * @returns {object} what names it in a request
 */
export function persisted(text) {
  return { persistedQuery: { version: 1, sha256Hash: sha256(text, 'hex') } };
}

/**
 * @param {object} extensions of `persisted`
 * @param {object} variables
 */
export function sendPersisted(extensions, variables) {
  return decoded(http.post(URL, JSON.stringify({ variables, extensions }), JSON_BODY));
}

/**
 * @param {object} extensions of `persisted`
 * @param {object} variables
 */
export function getPersisted(extensions, variables) {
  const query = `variables=${encoded(variables)}&extensions=${encoded(extensions)}`;
  return decoded(http.get(`${URL}?${query}`));
}

/** @param {object} value */
function encoded(value) {
  return encodeURIComponent(JSON.stringify(value));
}
