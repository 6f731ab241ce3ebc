// Judges the published contract with public validators: the AsyncAPI document with the parser of its authors, the JSON
// Schemas with Ajv, and every golden file with its schema. Exits 1 when anything is wrong.

import { readFileSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Parser } from '@asyncapi/parser';
import Ajv2020 from 'ajv/dist/2020.js';

const here = fileURLToPath(new URL('..', import.meta.url));
const read = (...path) => readFileSync(join(here, ...path), 'utf8');
const failures = [];
const fail = (what) => failures.push(what);

const { document, diagnostics } = await new Parser().parse(read('asyncapi.json'));
for (const { severity, path, message } of diagnostics) {
  // 0 is an error, 1 a warning; the others are advice.
  if (severity <= 1) fail(`asyncapi.json: ${path.join('/')}: ${message}`);
}
if (!document) fail('asyncapi.json: cannot be read');

const ajv = new Ajv2020({ strict: true, strictTypes: false, allErrors: true, validateFormats: false });
const schemas = new Map();
for (const file of readdirSync(join(here, 'schema'))) {
  const name = basename(file, '.json');
  try {
    schemas.set(name, ajv.compile(JSON.parse(read('schema', file))));
  } catch (error) {
    fail(`schema/${file}: ${error.message}`);
  }
}

// A golden file is named after its schema; a version or a variant may follow.
const schemaOf = (golden) =>
  golden === 'error.reply'
    ? 'processes.start.reply'
    : [golden, golden.replace(/\.v\d+(-.*)?$/, ''), golden.replace(/^(run-event)-.*$/, '$1')].find((name) => schemas.has(name));
let examples = 0;
for (const file of readdirSync(join(here, 'golden'))) {
  const golden = basename(file, '.json');
  const name = schemaOf(golden);
  const validate = schemas.get(name);
  if (!validate) {
    fail(`golden/${file}: no schema`);
    continue;
  }
  if (!validate(JSON.parse(read('golden', file)))) {
    fail(`golden/${file}: ${ajv.errorsText(validate.errors)}`);
  }
  examples += 1;
}

// What the fleet refuses, the schemas must refuse too.
const refused = [
  ['processes.start', {}],
  ['processes.start', { processInfoId: 'a b' }],
  ['processes.start', { processInfoId: 'p', inputs: {} }],
  ['processes.start', { processInfoId: 'p', input: null }],
  ['processes.start', { processInfoId: 'p', instanceName: '' }],
  ['processes.start', { processInfoId: 'p', onComplete: { job: '1' } }],
  ['processes.get', { instanceId: 7 }],
  ['processes.cancel', {}],
  ['processes.retry', { instanceId: 'i', task: -1 }],
  ['processes.set', { instanceId: 'i' }],
  ['processes.set', { instanceId: 'i', variables: [] }],
  ['processes.completeTask', { instanceId: 'i', task: '7' }],
  ['processes.assignTask', { instanceId: 'i', task: 7 }],
  ['processes.assignTask', { instanceId: 'i', task: 7, assignee: '' }],
  ['processes.history', { instanceId: 'i', count: 201 }],
  ['processes.message', { name: '' }],
  ['processes.message', { name: 'n', timeToLiveSeconds: 604801 }],
  ['processes.message', { name: 'n', messageId: 'a b' }],
  ['processes.signal', { name: 'n', correlationKey: 'k' }],
  ['agents.start', { agentId: 'a' }],
  ['agents.start', { agentId: 'a', instruction: ' ' }],
  ['agents.start', { agentId: 'a', instruction: 'i', timeoutSeconds: 9 }],
  ['agents.start', { agentId: 'a', instruction: 'i', runAs: 'root' }],
  ['agents.start', { agentId: 'a', instruction: 'i', deliverTo: { personnelId: 'p', to: 'q' } }],
  ['agents.get', {}],
  ['processes.start.reply', { ok: true }],
  ['processes.start.reply', { ok: false, error: { code: 'NO_SUCH_CODE', message: 'm' } }],
];
for (const [name, value] of refused) {
  if (schemas.get(name)?.(value) !== false) fail(`${name} accepts ${JSON.stringify(value)}`);
}

for (const failure of failures) console.error(failure);
console.log(
  `contract: 1 AsyncAPI document, ${schemas.size} schemas, ${examples} examples, ` +
    `${refused.length} counterexamples; ${failures.length} problems`,
);
process.exit(failures.length ? 1 : 0);
