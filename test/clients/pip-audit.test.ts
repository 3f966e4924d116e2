import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Served, closeAll } from '../server/served.ts'
import { runTool } from '../support/tools.ts'
import { serveFixes } from './mirror.ts'
import { type Built, installPython } from './toolbox.ts'

/* pip-audit, which asks osv.dev's API for each requirement: here the mirror's. */

const VERSION = '2.10.1'
const dir = mkdtempSync(join(tmpdir(), 'patchmirror-pip-audit-'))
let mirror: Served & { url: string }
let audit: Built

beforeAll(async () => {
  mirror = await serveFixes()
  audit = await installPython('pip-audit', VERSION, 'pip-audit')
})

afterAll(async () => {
  await closeAll()
  rmSync(dir, { recursive: true, force: true })
})

test.for<[string, string[]]>([
  ['2.0.1+root.io.1', ['ROOT-APP-PYPI-CVE-2024-1002']],
  ['2.0.1+root.io.2', []],
])(`pip-audit ${VERSION} finds in rootio-flask %s: %j`, async ([version, ids], context) => {
  if ('missing' in audit) return context.skip(`pip-audit ${VERSION}: ${audit.missing}`)
  const list = join(dir, 'requirements.txt')
  writeFileSync(list, `rootio-flask==${version}\n`)
  const asked = ['-s', 'osv', '--osv-url', `${mirror.url}/osv/v1/query`]
  const args = ['-r', list, '--no-deps', '--disable-pip', '-f', 'json', '--progress-spinner', 'off']
  const { out, err } = await runTool(audit.path, [...args, ...asked], {
    env: { XDG_CACHE_HOME: dir },
  })
  expect(err).not.toMatch(/Traceback|ERROR/)
  const { dependencies } = JSON.parse(out) as {
    dependencies: { name: string; vulns: { id: string; aliases: string[] }[] }[]
  }
  expect(dependencies.map(({ name }) => name)).toEqual(['rootio-flask'])
  const found = dependencies.flatMap(({ vulns }) => vulns)
  const named = found.flatMap(({ id, aliases }) => [id, ...aliases])
  expect(named.filter((id) => id.startsWith('ROOT-'))).toEqual(ids)
})
