import { mkdtempSync, renameSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { createLinkSecrets } from '../../../src/server/access/link-secrets.ts'
import { createLinks } from '../../../src/server/access/signed-links.ts'
import { loadQuick } from '../../support/limits.ts'
import { catalogBench } from '../../support/catalog/mirror.ts'
import { longTest, test } from '../../support/tables.ts'

const NOW = Date.UTC(2026, 4, 1)
const [OLD, NEW] = ['old'.padEnd(32, 'x'), 'new'.padEnd(32, 'x')] as const

function linkFile(...lines: string[]) {
  const path = join(mkdtempSync(join(tmpdir(), 'patchmirror-links-')), 'links')
  const write = (...next: string[]): void => {
    writeFileSync(`${path}.new`, next.join('\n'))
    renameSync(`${path}.new`, path) // another inode: the change shows whatever the clock's step is
  }
  write(...lines)
  return { path, write }
}

/** The links of one mirror, which looks at its file before each use. */
function mirror(path: string | null, own: string) {
  const lines: string[] = []
  const add = (_: object, text: string): void => void lines.push(text)
  const log = { debug: add, info: add, warn: add, error: add, isLevelEnabled: () => false }
  let time = 0
  const secrets = createLinkSecrets(path, Buffer.from(own.padEnd(32)), { log, clock: () => (time += 2000) })
  const links = createLinks(secrets, () => NOW)
  const sign = (): string => links.signLink({ path: '/-/artifacts/aa', expiresAt: links.expiry() })
  return { ...links, sign, lines }
}

test('a link of one mirror opens on every mirror with the same file, and on no other', () => {
  const { path } = linkFile('# for all readers', '', OLD)
  const one = mirror(path, 'a')
  const two = mirror(path, 'b')
  const other = mirror(null, 'c')
  expect(two.verifyLink(one.sign())).toEqual({ state: 'good' })
  expect(one.sign()).toBe(two.sign())
  expect(other.verifyLink(one.sign())).toEqual({ state: 'forged' })
  expect(one.verifyLink(other.sign())).toEqual({ state: 'forged' })
  expect(one.verifyLink(mirror(null, 'a').sign())).toEqual({ state: 'good' }) // made before the file was
})

test('a secret is changed without a link that does not open', () => {
  const first = linkFile(OLD)
  const second = linkFile(OLD)
  const one = mirror(first.path, 'a')
  const two = mirror(second.path, 'b')
  for (const step of [[OLD, NEW], [NEW, OLD], [NEW]])
    for (const { write } of [first, second]) {
      const before = [one.sign(), two.sign()]
      write(...step)
      const signed = step.length === 1 ? [] : before // the last step: no link of the old secret is left
      for (const link of [...signed, one.sign(), two.sign()])
        expect([one.verifyLink(link), two.verifyLink(link)]).toEqual([{ state: 'good' }, { state: 'good' }])
    }
})

test('a changed file that cannot be used is logged once, and the secret in use stays', () => {
  const { path, write } = linkFile(OLD)
  const one = mirror(path, 'a')
  const link = one.sign()
  write('short')
  expect([one.sign(), one.sign()]).toEqual([link, link])
  expect(one.lines).toEqual([expect.stringMatching(/^server\.linkSecretFile has a secret of fewer than 32 characters/)])
  expect(one.lines.join()).not.toContain('short;')
  write(NEW)
  expect(one.sign()).not.toBe(link)
})

test.each([
  ['short', 'fewer than 32 characters (secret 1)'],
  [`${OLD}\nshort`, 'fewer than 32 characters (secret 2)'],
  ['# nothing', 'has no secret'],
  ['x'.repeat(70_000), 'longer than 65536 bytes'],
])('the settings refuse a file with %j', (text, why) => {
  const { path } = linkFile(text.slice(0, 70_000))
  const env = { PATCHMIRROR_SERVER_LINK_SECRET_FILE: path }
  expect(() => loadQuick({ env, cwd: tmpdir(), requireUpstream: false })).toThrow(why)
})

longTest('links in answers of lists and items are signed with the file, beside the serving thread too', async () => {
  const { path } = linkFile(OLD)
  const env = { PATCHMIRROR_SERVER_LINK_SECRET_FILE: path, PATCHMIRROR_CATALOG_SCOPE: 'all' }
  const bench = await catalogBench({ images: 1, tags: 2, packages: 1, tickets: 1 }, { env })
  expect(await bench.run('catalog')).toMatchObject({ state: 'complete' })
  const list = (await (await bench.ask('/v1/tags/')).json()) as { data: { id: string }[] }
  const sbom = await (await bench.ask(`/v1/tags/${list.data[0]?.id ?? ''}/sbom`)).json()
  const url = new URL(Object.values(sbom as Record<string, string>)[0] ?? '')
  const other = mirror(path, 'b')
  expect(other.verifyLink(url.pathname + url.search)).toEqual({ state: 'good' })
  expect((await fetch(url)).status).toBe(200)
})
