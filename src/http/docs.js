const find = (id) => document.getElementById(id);
const pretty = (value) => (typeof value === 'string' ? value : JSON.stringify(value, null, 2));

// Text only ever enters the page as text nodes, so no part of the document can become markup.
function element(tag, ...children) {
  const node = document.createElement(tag);
  node.append(...children);
  return node;
}

function folded(summary, ...children) {
  return element('details', element('summary', summary), ...children);
}

function resolve(api, schema) {
  return schema.$ref ? api.components.schemas[schema.$ref.split('/').at(-1)] : schema;
}

function typeOf(schema) {
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(' or ');
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ');
  if (schema.type === 'array') return `array of ${typeOf(schema.items)}`;
  return schema.type ?? 'any';
}

function noteOf(schema) {
  const bounds = ['minimum', 'maximum', 'maxItems', 'default'].filter((name) => name in schema);
  const facts = bounds.map((name) => `${name} ${JSON.stringify(schema[name])}`);
  return [schema.description, ...facts].filter(Boolean).join('; ');
}

function rowsOf(schema, prefix = '') {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const label = element('code', prefix + name);
    const must = schema.required?.includes(name) ? '' : ' (optional)';
    const row = element(
      'tr',
      element('td', label, must),
      element('td', typeOf(field)),
      element('td', noteOf(field)),
    );
    const inner =
      field.type === 'array'
        ? rowsOf(field.items, `${prefix}${name}[].`)
        : rowsOf(field, `${prefix}${name}.`);
    return [row, ...inner];
  });
}

function content(api, body) {
  return Object.entries(body.content ?? {}).flatMap(([type, { schema, example, examples }]) => {
    const { anyOf, ...only } = resolve(api, schema);
    const tables = (anyOf ?? [only])
      .map((one) => rowsOf(one))
      .filter((rows) => rows.length > 0)
      .map((rows) => element('table', ...rows));
    const shown = examples ? Object.values(examples).map((one) => one.value) : example ? [example] : [];
    return [
      element('p', element('code', type)),
      ...tables,
      ...shown.map((one) => element('pre', pretty(one))),
    ];
  });
}

function section(api, path, method, operation) {
  const title = element('h2', element('code', element('b', method.toUpperCase()), ` ${path}`));
  const parts = [title, element('p', operation.summary, '. ', operation.description ?? '')];
  const parameters = (operation.parameters ?? []).map((one) =>
    element(
      'tr',
      element('td', element('code', one.name), one.required ? '' : ' (optional)'),
      element('td', `${one.in}, ${typeOf(one.schema)}`),
      element('td', noteOf({ description: one.description, ...one.schema })),
    ),
  );
  if (parameters.length > 0) parts.push(folded('Parameters', element('table', ...parameters)));
  if (operation.requestBody) parts.push(folded('Request', ...content(api, operation.requestBody)));
  for (const [status, response] of Object.entries(operation.responses)) {
    parts.push(folded(`${status} ${response.description}`, ...content(api, response)));
  }
  return element('section', ...parts);
}

async function run() {
  const answer = find('answer');
  answer.hidden = false;
  answer.textContent = 'Running…';
  const headers = { 'content-type': 'application/json' };
  if (find('key').value) headers.authorization = `Bearer ${find('key').value}`;
  try {
    const path = `/execute/${find('language').value}`;
    const response = await fetch(path, { method: 'POST', headers, body: find('body').value });
    answer.textContent = `${response.status}\n${pretty(await response.json())}`;
  } catch (error) {
    answer.textContent = `No answer: ${error.message}`;
  }
}

async function show() {
  const api = await (await fetch('/openapi.json')).json();
  find('version').textContent = api.info.version;
  find('about').textContent = api.info.description;
  const execute = api.paths['/execute/{language}'].post;
  const names = execute.parameters[0].schema.enum ?? [];
  find('language').append(...names.map((name) => element('option', name)));
  find('body').value = pretty(
    Object.values(execute.requestBody.content['application/json'].examples)[0].value,
  );
  find('key-label').hidden = !api.components.securitySchemes;
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      find('routes').append(section(api, path, method, operation));
    }
  }
  find('try').addEventListener('submit', (event) => {
    event.preventDefault();
    void run();
  });
}

show().catch((error) => {
  find('about').textContent = `Cannot load /openapi.json: ${error.message}`;
});
