import { expect, onTestFinished, test } from 'vitest'
import { isFixable, joinPatches } from '../../src/match/patches.ts'
import type { MatchFinding } from '../../src/match/result.ts'
import { SANDBOX_KEYS } from '../../src/sandbox/service/credentials.ts'
import { generateTickets } from '../../src/sandbox/service/data/tickets.ts'
import { type ShapeName, SHAPE_NAMES, shapeOf } from '../../src/sandbox/service/shapes/shape.ts'
import { openShortReads } from '../../src/store/reads.ts'
import { createBench } from '../support/mirror.ts'
import { longTest } from '../support/tables.ts'

const SEED = 11

const ECOSYSTEMS: Readonly<Record<string, readonly [ecosystem: string, type: string]>> = {
  alpine: ['Alpine:v3.20', 'apk/alpine'],
  debian: ['Debian:12', 'deb/debian'],
  ubuntu: ['Ubuntu:22.04:LTS', 'deb/ubuntu'],
  pypi: ['PyPI', 'pypi'],
  npm: ['npm', 'npm'],
  maven: ['Maven', 'maven'],
}

function finding(cves: Partial<MatchFinding>, ecosystem: string, purl: string): MatchFinding {
  return {
    ...{ id: 'X-1', aliases: [], upstream: [], summary: '', modified: null, ...cves },
    severity: { level: null, score: null, stated: [] },
    component: { name: 'x', version: '1', purl, refs: [], refCount: 0 },
    ...{ ecosystems: [ecosystem], fixed: [], patches: [] },
  }
}

/** Mirrors a service of this shape, and joins findings with its list of patches. */
async function mirrored(shape: ShapeName) {
  const service = { images: 0, tags: 0, packages: 0, avrs: 0, subscriptions: 0, tickets: 60, shape }
  const bench = await createBench({
    sandbox: { seed: SEED, records: 1, service },
    env: { PATCHMIRROR_UPSTREAM_API_KEY: SANDBOX_KEYS.readonly },
  })
  expect(await bench.run('catalog')).toMatchObject({ state: 'complete' })
  const opened = openShortReads(bench.dir)
  onTestFinished(async () => {
    opened?.close()
    await bench.close()
  })
  if (opened === null) throw new Error('no database')
  const { ids } = shapeOf(shape).records
  const tickets = generateTickets({ seed: SEED, ids }, 60).map(({ listed }) => listed)
  return {
    tickets,
    join: (...all: MatchFinding[]) => joinPatches(all, opened.reads, () => undefined),
  }
}

async function joinsAll(shape: ShapeName): Promise<void> {
  const { tickets, join } = await mirrored(shape)
  const about = tickets.map(({ cve_id: cve, ecosystem, package_src_name: name }) => {
    const [recorded = '', type = ''] = ECOSYSTEMS[ecosystem] ?? []
    const plain = name.replace(':', '/').replace('@', '%40')
    return finding({ aliases: [cve] }, recorded, `pkg:${type}/${plain}@1`)
  })
  const { findings, patches } = join(...about)
  expect(patches).toEqual({ notApplied: null, entries: 60 })
  for (const [
    at,
    { ticket_id: ticket, cve_id: cve, ticket_status: status, version },
  ] of tickets.entries()) {
    const found = findings[at]
    expect(found?.patches).toContainEqual(expect.objectContaining({ ticket, cve, status, version }))
    if (found?.patches.length === 1) expect(isFixable(found)).toBe(status === 'done')
  }
  expect(findings.filter((one) => isFixable(one)).length).toBeGreaterThan(3)
}

test('a patch is joined with the findings about its CVE, ecosystem and package', () =>
  joinsAll('wire'))

for (const shape of SHAPE_NAMES.filter((one) => one !== 'wire'))
  longTest(`a patch is joined however the service writes its list: ${shape}`, () => joinsAll(shape))

test('a patch of another package, ecosystem or vulnerability is not joined', async () => {
  const { tickets, join } = await mirrored('wire')
  const [{ cve_id: cve, package_src_name: name } = { cve_id: '', package_src_name: '' }] =
    tickets.filter(({ ecosystem }) => ecosystem === 'debian')
  const purl = `pkg:deb/debian/${name}@1`
  const { findings } = join(
    finding({ upstream: [cve] }, 'Root:Debian:12', purl),
    finding({ id: 'CVE-0-0' }, 'Debian:12', purl),
    finding({ id: cve }, 'Debian:12', `${purl}x`.replace(name, `${name}x`)),
    finding({ id: cve }, 'npm', `pkg:npm/${name}@1`),
    finding({ id: cve }, 'Debian:12', 'no purl'),
  )
  expect(findings.map(({ patches }) => patches.length > 0)).toEqual([
    true,
    false,
    false,
    false,
    false,
  ])
})
