import { describe, expect } from 'vitest'
import { type Saying, plainBench } from '../../../support/catalog/plain-service.ts'
import { test } from '../../../support/tables.ts'

const VERSIONS = ['1.0.0', '1.0.1', '1.0.2', '1.1.0', '1.2.0']
const LIMITS = { PATCHMIRROR_GUARD_LIMIT: 'removed=10% and 5' }

const versionsOf = (name: string): string => `/packages/ecosystems/npm/packages/${name}/versions`

/** What lists of vulnerabilities answer then, and the headers of lists of versions. */
interface Others {
  cves: unknown
  headers: Record<string, string>
}

/** A mirror of packages with the same versions, which all changed since its first sync; `listed` says what each list of versions answers then. */
async function changed(names: readonly string[], listed: unknown, { cves, headers = {} }: Partial<Others> = {}) {
  let n = 0
  const others = () => (n === 0 ? {} : headers)
  const paths: Record<string, Saying> = {
    '/v1/packages/': () => ({
      body: { data: names.map((name) => ({ id: name, name, ecosystem: 'npm', version: '1.2.0', n })) },
    }),
  }
  for (const name of names) {
    paths[`/v1/packages/${name}/`] = () => ({ body: { id: name, name } })
    paths[versionsOf(name)] = () => ({ body: n === 0 ? VERSIONS : listed, headers: others() })
    for (const version of VERSIONS) {
      const known = { cves: ['CVE-2024-1', 'CVE-2024-2'] }
      paths[`${versionsOf(name)}/${version}/cves`] = () => ({ body: (n === 0 ? undefined : cves) ?? known })
      paths[`${versionsOf(name)}/${version}/details`] = () => ({ body: { version } })
    }
  }
  const made = await plainBench(paths, LIMITS)
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  n++
  const report = await made.run('catalog', { full: cves !== undefined })
  const statusOf = async (path: string) => (await made.ask(path)).status
  return { made, report, statusOf }
}

describe('a list of versions that is shorter', () => {
  test('in several packages at once is quarantined, though each package stays', async () => {
    const { report, statusOf, made } = await changed(['a', 'b', 'c', 'd'], ['1.2.0'])
    expect(report).toMatchObject({ state: 'quarantined', facts: { plannedRemoved: 32 } })
    expect(report.message).toContain('32 of 40 answers about versions')
    expect(await statusOf(`${versionsOf('a')}/1.0.0/cves`)).toBe(200)
    const approved = made.store.quarantine.readQuarantine(report.id)
    if (approved === null) throw new Error('nothing is in quarantine')
    expect(await made.run('catalog', { kind: 'approve', approved })).toMatchObject({ state: 'complete' })
    expect(await statusOf(`${versionsOf('a')}/1.0.0/cves`)).toBe(404)
  })

  test('below the limits is believed, and named among what the window counts', async () => {
    const { report } = await changed(['a'], VERSIONS.slice(1))
    expect(report).toMatchObject({ state: 'complete', facts: { doubtsBelowLimits: 2 } })
  })

  test('because other versions replace its own is believed', async () => {
    const others = VERSIONS.map((version) => `${version}1`)
    expect((await changed(['a', 'b', 'c', 'd'], others)).report).toMatchObject({ state: 'complete' })
  })
})
