// Messages as k6 shows them: the JSON mapping of protobuf, strict in what it reads, with every field in what it writes.

/** A message for the wire. Throws at what the type doesn't have. */
export function fromJson(type, value) {
  const message = {};
  for (const [key, given] of Object.entries(value)) {
    const field = type.fieldsArray.find(({ name }) => name === key || snake(name) === key);
    if (!field) throw new Error(`unknown field "${key}" in ${type.fullName}`);
    if (field.repeated && !Array.isArray(given)) throw new Error(`field "${key}" must be an array`);
    message[field.name] = field.repeated ? given.map((item) => read(field, item)) : read(field, given);
  }
  const wrong = type.verify(message);
  if (wrong) throw new Error(`${type.fullName}: ${wrong}`);
  return type.create(message);
}

function read(field, value) {
  const type = field.resolvedType;
  if (!type) return value;
  if (type.fields) return fromJson(type, value);
  if (typeof value === 'string' && type.values[value] === undefined) throw new Error(`${type.fullName} has no ${value}`);
  return typeof value === 'string' ? type.values[value] : value;
}

/** A message as values. */
export function toJson(type, message) {
  if (type.fullName === '.google.protobuf.Timestamp') return timestamp(message);
  const value = {};
  for (const field of type.fieldsArray) {
    const set = Object.prototype.hasOwnProperty.call(message, field.name);
    if (!set && field.partOf) continue;
    const content = message[field.name];
    value[field.name] = field.repeated ? content.map((item) => written(field, item)) : written(field, content);
  }
  return value;
}

function written(field, content) {
  const type = field.resolvedType;
  if (type && type.fields) return content ? toJson(type, content) : null;
  if (type) return type.valuesById[content] ?? content;
  if (/64$/.test(field.type)) return String(content);
  return content;
}

function timestamp({ seconds, nanos }) {
  const whole = new Date(Number(seconds) * 1000).toISOString().slice(0, 19);
  const parts = String(nanos).padStart(9, '0').replace(/(000){1,3}$/, '');
  return `${whole}${parts && `.${parts}`}Z`;
}

const snake = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
