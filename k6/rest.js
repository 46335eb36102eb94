// Replies that are JSON.

/** @typedef {{ status: number, body: any }} Json */

/** How a request says that its body is JSON. */
export const JSON_BODY = { headers: { 'Content-Type': 'application/json' } };

/**
 * @param {{ status: number, body: unknown }} response
 * @returns {Json} the values of its lines, or none when one of them is no JSON
 */
export function decodedLines(response) {
  try {
    const lines = String(response.body).trim().split('\n');
    return { status: response.status, body: lines.map((line) => JSON.parse(line)) };
  } catch (error) {
    return { status: response.status, body: [] };
  }
}

/**
 * @param {{ status: number, body: unknown }} response
 * @returns {Json} its body as values, or an empty object when it is no JSON
 */
export function decoded(response) {
  try {
    return { status: response.status, body: JSON.parse(String(response.body)) || {} };
  } catch (error) {
    return { status: response.status, body: {} };
  }
}
