// k6 has a console, and its types leave it to those of browsers, which have much that k6 has not.
declare const console: { error(message: string): void };
