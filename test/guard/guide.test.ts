import { readFileSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { openWorld } from '../support/daemons.ts'
import { commandHost } from '../support/hosted.ts'

const page = readFileSync('docs/guides/guard.md', 'utf8')
const [, change = '', script = '', synced = '', shown = ''] =
  /`POST (\/\S+)`[\s\S]*?<!-- a test runs this block -->\s+```sh\n([^`]+)```\s+```text\n([^`]+)```\s+```text\n([^`]+)```/.exec(
    page,
  ) ?? []
const command = commandHost()

/** Lines of an output; how many bytes came depends on the compression of this machine. */
function linesOf(text: string): string[] {
  const lines = text.split('\n').map((line) => line.trim().replace(/\d+ bytes/, 'some bytes'))
  return lines.filter((line) => line !== '' && !line.startsWith('…'))
}

test('the commands of docs/guides/guard.md say what it shows of a feed whose fixes are lowered', async () => {
  const world = await openWorld({ records: 500 }, undefined, command)
  onTestFinished(() => world.close())
  expect(await world.patchmirror('sync', 'osv')).toMatchObject({ code: 0 })
  expect((await fetch(world.sandbox.url + change, { method: 'POST' })).ok).toBe(true)
  const said: string[] = []
  for (const line of script.trim().split('\n')) {
    const [program, ...args] = line.split(' ')
    expect(program).toBe('patchmirror')
    const { out, err } = await world.patchmirror(...args)
    said.push(...linesOf(out + err))
  }
  const expected = [...linesOf(synced), ...linesOf(shown)]
  expect(expected.length).toBeGreaterThan(8)
  expect(expected.filter((line) => !said.includes(line))).toEqual([])
})
