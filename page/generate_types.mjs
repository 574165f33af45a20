// Generates the types of the API from its OpenAPI description. Several operations share an id, by
// which the generator would merge them, so the ids are removed first.
import { readFileSync, writeFileSync } from 'node:fs';
import openapiTS, { astToString } from 'openapi-typescript';

const description = JSON.parse(readFileSync(new URL('../tests/golden/openapi.json', import.meta.url), 'utf8'));
for (const methods of Object.values(description.paths)) {
  for (const operation of Object.values(methods)) delete operation.operationId;
}
const types = astToString(await openapiTS(description, { silent: true }));
writeFileSync(new URL('src/api/schema.d.ts', import.meta.url), types);
