import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Served, closeAll } from '../server/served.ts'
import { runTool } from '../support/tools.ts'
import { serveFixes } from './mirror.ts'
import { type Built, installPython } from './toolbox.ts'

/* `uv audit`, which asks osv.dev's API for all packages of a lock file at once, and then for each record: here the mirror's. */

const VERSION = '0.13.9'
const dir = mkdtempSync(join(tmpdir(), 'patchmirror-uv-'))
let mirror: Served & { url: string }
let uv: Built

beforeAll(async () => {
  mirror = await serveFixes()
  uv = await installPython('uv', VERSION, 'uv')
})

afterAll(async () => {
  await closeAll()
  rmSync(dir, { recursive: true, force: true })
})

/** Writes a project that needs one package; its index is the mirror, which has none. */
function writeProject(version: string): void {
  writeFileSync(
    join(dir, 'pyproject.toml'),
    `[project]\nname = "app"\nversion = "1.0.0"\nrequires-python = ">=3.9"\ndependencies = ["rootio-flask==${version}"]\n`,
  )
  const file = `{ url = "${mirror.url}/rootio_flask-${version}.tar.gz", hash = "sha256:${'0'.repeat(64)}" }`
  const lock = [
    'version = 1\nrevision = 3\nrequires-python = ">=3.9"\n',
    '[[package]]\nname = "app"\nversion = "1.0.0"\nsource = { virtual = "." }\ndependencies = [{ name = "rootio-flask" }]\n',
    `[package.metadata]\nrequires-dist = [{ name = "rootio-flask", specifier = "==${version}" }]\n`,
    `[[package]]\nname = "rootio-flask"\nversion = "${version}"\nsource = { registry = "${mirror.url}/simple" }\nsdist = ${file}\n`,
  ]
  writeFileSync(join(dir, 'uv.lock'), lock.join('\n'))
}

function audit(path: string, base: string): ReturnType<typeof runTool> {
  const args = ['audit', '--frozen', '--no-cache', '--no-config', '--output-format', 'json', '--service-url', base]
  return runTool(path, args, { cwd: dir })
}

interface Audit {
  readonly summary: { readonly audited_packages: number }
  readonly vulnerabilities: readonly { readonly id: string; readonly fix_versions: readonly string[] }[]
}

test.for<[string, [string, string[]][]]>([
  ['2.0.1+root.io.1', [['ROOT-APP-PYPI-CVE-2024-1002', ['2.0.1+root.io.2']]]],
  ['2.0.1+root.io.2', []],
])(`uv ${VERSION} finds in rootio-flask %s, with the fix: %j`, async ([version, expected], context) => {
  if ('missing' in uv) return context.skip(`uv ${VERSION}: ${uv.missing}`)
  writeProject(version)
  const { out, err } = await audit(uv.path, `${mirror.url}/osv/`)
  expect(err).not.toMatch(/^error/m)
  const { summary, vulnerabilities } = JSON.parse(out) as Audit
  expect(summary.audited_packages).toBe(1)
  expect(vulnerabilities.map(({ id, fix_versions: fixes }) => [id, fixes])).toEqual(expected)
})

test(`uv ${VERSION} fails where the base URL lacks its slash, and does not say that nothing was found`, async (context) => {
  if ('missing' in uv) return context.skip(`uv ${VERSION}: ${uv.missing}`)
  writeProject('2.0.1+root.io.1')
  const { code, out, err } = await audit(uv.path, `${mirror.url}/osv`)
  expect([code, out]).toEqual([2, ''])
  expect(err).toContain('/v1/querybatch')
  const told = await fetch(`${mirror.url}/v1/querybatch`, { method: 'POST', body: '{"queries":[]}' })
  expect([told.status, await told.text()]).toEqual([404, expect.stringContaining('below /osv/')])
})
