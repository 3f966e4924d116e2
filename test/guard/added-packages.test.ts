import { expect, test } from 'vitest'
import { doubtsAbout } from '../../src/guard/kinds.ts'

const packageOf = (ecosystem: string, name: string, fixed: string) => ({
  package: { ecosystem, name },
  ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed }] }],
})

function kindsOf(ecosystem: string, fixed: string, added: string): string[] {
  const before = { id: 'R-1', affected: [packageOf(ecosystem, 'openssl', fixed)] }
  const after = { id: 'R-1', affected: [...before.affected, packageOf(ecosystem, 'openssl-libs', added)] }
  const parsed = [before, after].map((json) => ({ json, length: 1_000 }))
  const [one = { json: {}, length: 0 }, other = one] = parsed
  return doubtsAbout(one, other).map(({ kind }) => kind)
}

test('A binary package that comes with a lower fix is doubted where its name decides before that of its source', () => {
  for (const ecosystem of ['AlmaLinux:9', 'Red Hat:enterprise_linux:9::baseos', 'Rocky Linux:9'])
    expect(kindsOf(ecosystem, '1:3.0.7-25.el9', '0:0')).toEqual(['affectedLost'])
  expect(kindsOf('Debian:12', '3.0.11-1', '0')).toEqual([])
  expect(kindsOf('npm', '3.0.1', '0.0.1')).toEqual([])
})

test('A binary package that comes with the same fix, or a higher one, is believed', () => {
  expect(kindsOf('AlmaLinux:9', '1:3.0.7-25.el9', '1:3.0.7-25.el9')).toEqual([])
  expect(kindsOf('AlmaLinux:9', '1:3.0.7-25.el9', '1:3.0.7-26.el9')).toEqual([])
})
