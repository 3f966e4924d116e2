import { expect, test } from 'vitest'
import { judgeComponents } from '../../../../src/features/match/judging/judge.ts'
import type { JudgeSource } from '../../../../src/features/match/judging/package-source.ts'

/** Ids of the records of each package, which affect every version; one package has more than are read at once. */
const IDS = new Map(
  Array.from({ length: 700 }, (_, at) => [
    `p${at}`,
    Array.from({ length: at === 300 ? 5000 : at % 4 }, (_, one) => `R-${at}-${10_000 + one}`),
  ]),
)

function sourceWith(records: JudgeSource['listPackageRecords'], asked: string[]): JudgeSource {
  const content = (id: string) =>
    Buffer.from(
      JSON.stringify({
        id,
        affected: [{ package: { ecosystem: 'npm', name: `p${id.split('-')[1]}` }, versions: ['1.0.0'] }],
      }),
    )
  return {
    listCandidates(_ecosystem, name, after, limit) {
      asked.push(name)
      const ids = (IDS.get(name) ?? []).filter((id) => id > after)
      return ids.slice(0, limit).map((id) => ({ id }))
    },
    readRecord: (_ecosystem, id) => ({ content: content(id), prefixes: [] }),
    hasEcosystem: () => true,
    hasRelease: () => true,
    listPackageRecords: records,
  }
}

test('packages that are listed ahead, also in parts, have the findings of packages that are asked for one at a time', async () => {
  const components = [...IDS.keys()].flatMap((name) =>
    ['1.0.0', '2.0.0'].map((version) => ({
      ref: '',
      name,
      version,
      purl: `pkg:npm/${name}@${version}`,
      source: null,
      kind: null,
      type: '',
      licences: '',
    })),
  )
  const asked: string[] = []
  const lists: number[] = []
  const source = sourceWith((ecosystem, names, limit) => {
    lists.push(names.length)
    const rows = names.flatMap((name, at) => (IDS.get(name) ?? []).map((id) => ({ name, at, id })))
    const complete = rows.length < limit ? names.length : (rows[limit - 1]?.at ?? 0)
    const known = rows.slice(0, limit).filter(({ at }) => at < complete)
    const read = (id: string) => () => source.readRecord(ecosystem, id)
    const records = [...Map.groupBy(known, ({ name }) => name)].map(
      ([name, ones]) => [name, ones.map(({ id }) => ({ id, read: read(id) }))] as const,
    )
    return { records: new Map(records), complete }
  }, asked)
  const { findings } = await judgeComponents(components, source, { check: () => undefined })
  const expected = [...IDS].flatMap(([name, ids]) => ids.map((id) => `${name} ${id}`)).sort()
  expect(findings.map(({ component, id }) => `${component.name} ${id}`).sort()).toEqual(expected)
  expect([...new Set(asked)]).toEqual(['p300']) // it alone has more than are read at once
  expect(lists.length).toBeLessThan(8)
})
