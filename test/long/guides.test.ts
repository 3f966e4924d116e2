import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { GUIDES, guideBlocks, runGuide, runnableBlocks } from '../support/guides/guide.ts'
import { compareShown } from '../support/guides/shown.ts'
import { findTool } from '../support/tools.ts'

const missing = ['curl', 'diff', 'unzip'].filter((name) => findTool(name) === null)
const note = missing.length > 0 ? ` (skipped: there is no ${missing.join(', ')})` : ''

/** Says which blocks of a page are skipped here, and why. */
function skippedOf(page: string): string {
  const lacking = guideBlocks(page).filter(({ notRun, lacking }) => notRun === null && lacking.length > 0)
  return lacking.map((block) => ` (skipped: line ${block.line}, there is no ${block.lacking.join(', ')})`).join('')
}

test.skipIf(missing.length > 0).concurrent.for(GUIDES.map((guide) => ({ ...guide, skipped: skippedOf(guide.page) })))(
  `the commands of $page run as they are written, and say what the page shows${note}$skipped`,
  async (guide) => {
    const runs = await runGuide(guide)
    const failed = runs.filter(({ code }) => code !== 0)
    expect(failed).toEqual([])
    const others = runs.flatMap(({ at, shown, out }) => {
      const difference = shown === null ? null : compareShown(shown, out)
      return difference === null ? [] : [{ at, ...difference }]
    })
    expect(others).toEqual([])
    expect(runs.length).toBe(runnableBlocks(guide.page).length)
    expect(runs.length).toBeGreaterThan(0)
  },
)

test('an output is compared with what a page shows but for times, numbers, digests and left-out lines', () => {
  const out =
    'osv  complete  120  13f402a5e77f  2026-11-29T07:14:35Z  2 s\n{"level":"info"}\nkey pmk_QwRO… is made\nready\n'
  expect(compareShown('osv complete 500 1a19d536c627 2026-05-01 00:31:09Z 14 s\n…\nready\n', out)).toBe(null)
  expect(compareShown('osv complete 500 1a19d536c627 2026-05-01 00:31:09Z 14 s\nkey … is made\nready\n', out)).toBe(
    null,
  )
  for (const wrong of ['osv partial …\n…\n', '…\nkey … is made\n', 'ready\n', '…\nready\nand more\n'])
    expect(compareShown(wrong, out), wrong).not.toBe(null)
})

test('a guide of which a command fails is found, with its place', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'patchmirror-page-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const page = join(folder, 'page.md')
  writeFileSync(
    page,
    '# A page\n\n```sh\necho begun > file\n```\n\n```sh\ncat file\nfalse\necho after\n```\n\n```sh\necho never\n```\n',
  )
  const runs = await runGuide({ page, begins: 'command' })
  expect(runs.map(({ at, code, out }) => [at, code, out])).toEqual([
    [`${page}:3`, 0, ''],
    [`${page}:7`, 1, 'begun\n'],
  ])
})

test('a block that needs what this machine lacks is skipped by name, and one with a fault before it is not run', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'patchmirror-page-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const page = join(folder, 'page.md')
  const block = (comment: string): string => `<!-- ${comment} -->\n\n\`\`\`sh\necho run\n\`\`\`\n\n`
  writeFileSync(page, block('needs: sh, no-such-program') + block('before: true') + block('before: echo why; false'))
  expect(guideBlocks(page).map(({ lacking }) => lacking)).toEqual([['no-such-program'], [], []])
  expect(skippedOf(page)).toBe(' (skipped: line 3, there is no no-such-program)')
  const runs = await runGuide({ page, begins: 'command' })
  expect(runs.map(({ code, out }) => [code, out])).toEqual([
    [0, 'run\n'],
    [1, 'why\n'],
  ])
})
