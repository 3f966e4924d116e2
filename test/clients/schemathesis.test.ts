import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { allKnown } from '../support/catalog/contract.ts'
import { bearer } from '../support/keys.ts'
import { runTool } from '../support/tools.ts'
import { type WholeMirror, openWholeMirror } from '../support/whole-mirror.ts'
import { type Built, installPython } from './toolbox.ts'

/*
 * Schemathesis, which makes valid and invalid requests from the OpenAPI document and compares the answers of the daemon with
 * it, with all checks that it has by default.
 */

const VERSION = '4.32.5'
const dir = mkdtempSync(join(tmpdir(), 'patchmirror-schemathesis-'))
let mirror: WholeMirror
let tool: Built

beforeAll(async () => {
  tool = await installPython('schemathesis', VERSION, 'schemathesis')
  mirror = await openWholeMirror({ PATCHMIRROR_SERVER_TRUST_PROXY: '127.0.0.1' })
})
afterAll(async () => {
  await mirror.close()
  rmSync(dir, { recursive: true, force: true })
})

/** Statuses that do not depend on whether a request fits the document: conditions and ranges depend on the content. */
const VALID = ['2xx', '304', '401', '403', '404', '412', '416', '501']

interface KnownValues {
  /** An expression for the paths of the document. */
  readonly path: string
  readonly parameter: string
  readonly values: readonly string[]
}

/** What exists, by the paths and parameters that take it. */
async function knownValues(): Promise<KnownValues[]> {
  const known = allKnown(mirror)
  const id = (path: string, values: readonly string[]): KnownValues => {
    return { path, parameter: 'path.id', values }
  }
  const index = await mirror.get('/external/osv/all.json')
  const tags = await (await mirror.get('/v1/tags')).text()
  return [
    id('^/v1/(images/)?tags/[{]', known.tags),
    id('^/v1/images/[{]id', known.images),
    id('^/v1/packages/[{]', known.packages),
    id('^/v1/avrs/', known.avrs),
    id('^/v1/api_keys/[{]', known.apiKeys),
    id('^/v1/subscriptions/[{]', known.subscriptions),
    id('^/(external/osv|osv/v1/vulns|-/records)/[{]', known.osv),
    id('^/osv/[{]ecosystem[}]/[{]id', known.osv),
    { path: '^/v1/images/[{]repo', parameter: 'path.repo', values: known.repos },
    ...['^/osv/[{]ecosystem[}]/[{]id', '^/osv/[{]ecosystem[}]/[am]'].map((path) => {
      return { path, parameter: 'path.ecosystem', values: ['Root'] }
    }),
    ...(['ecosystem', 'name', 'version', 'arch'] as const).map((name) => ({
      path: '^/packages/ecosystems/',
      parameter: `path.${name}`,
      values: known.releases.map((one) => one[name]).slice(0, 1), // all of one release
    })),
    { path: '^/-/vex/', parameter: 'path.digest', values: tags.match(/sha256:[0-9a-f]{64}/g) ?? [] },
    { path: '^/-/changes', parameter: 'query.tag', values: known.tags },
    {
      path: '^/-/changes',
      parameter: 'query.since',
      values: [index.headers.get('x-mirror-snapshot') ?? ''],
    },
  ]
}

/** The configuration, as TOML: known identifiers in most requests, and the statuses that are no faults here. */
async function configuration(): Promise<string> {
  const values = await knownValues()
  const list = (texts: readonly string[]): string => JSON.stringify(texts)
  const dictionaries = values.map((one, at) => `known${at} = { values = ${list(one.values)} }`)
  const byPath = Map.groupBy(values.entries(), ([, { path }]) => path)
  const operations = [...byPath].map(([path, entries]) => {
    const bound = entries.map(
      ([at, { parameter }]) => `"${parameter}" = { dictionary = "known${at}", probability = 0.8 }`,
    )
    return `[[operations]]\ninclude-path-regex = '${path}'\n[operations.parameters]\n${bound.join('\n')}`
  })
  return [
    // An operation of which nothing is found would not be tested.
    '[warnings]\nfail-on = ["missing_test_data"]',
    `[dictionaries]\n${dictionaries.join('\n')}`,
    `[checks.positive_data_acceptance]\nexpected-statuses = ${list(VALID)}`,
    // 501 is declared: no item has the field by which a list is to be ordered. Any other 5xx is a fault.
    '[checks.not_a_server_error]\nexpected-statuses = ["2xx", "3xx", "4xx", "501"]',
    ...operations,
    // Its filters exclude each other (purl and ecosystem, a source without records), which no schema says.
    `[[operations]]\ninclude-path-regex = '^/-/changes$'\n[operations.checks.positive_data_acceptance]\nexpected-statuses = ${list([...VALID, '400'])}`,
    // Nor does a schema say which releases are known, and what the name of an image is.
    `[[operations]]\ninclude-path-regex = '^/-/(match$|vex/)'\n[operations.checks.positive_data_acceptance]\nexpected-statuses = ${list([...VALID, '400'])}`,
    // Users are mirrored at one version of the identity surface.
    "[[operations]]\ninclude-path-regex = '^/v(0|2-beta)/users'\nwarnings = false",
    // Built programs alone have a bill of materials.
    "[[operations]]\ninclude-path-regex = '^/-/sbom'\nwarnings = false",
  ].join('\n\n')
}

test(`schemathesis ${VERSION} finds nothing that contradicts the document`, async (context) => {
  if ('missing' in tool) return context.skip(`schemathesis ${VERSION}: ${tool.missing}`)
  const config = join(dir, 'schemathesis.toml')
  writeFileSync(config, await configuration())
  const args = [
    ...['--config-file', config, 'run', `${mirror.url}/-/openapi.json`, '--url', mirror.url],
    ...['--header', `Authorization: ${bearer().Authorization}`],
    ...['--exclude-path', '/-/events'], // its answer does not end
    ...['--seed', '1', '--max-examples', '15', '--continue-on-failure'],
    ...['--request-timeout', '30', '--generation-database', 'none', '--no-color'],
  ]
  const env = {
    SCHEMATHESIS_HOOKS: 'schemathesis_hooks',
    PYTHONPATH: resolve('test/clients'),
    PYTHONDONTWRITEBYTECODE: '1',
  }
  const { code, out } = await runTool(tool.path, args, { cwd: dir, env, timeoutMs: 580_000 })
  const report = out.includes('FAILURES') ? out.slice(out.indexOf('FAILURES')) : out.slice(-5_000)
  expect(code, report.slice(0, 10_000)).toBe(0)
})
