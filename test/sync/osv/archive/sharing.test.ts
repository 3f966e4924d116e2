import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, onTestFinished } from 'vitest'
import { eachChecked } from '../../../../src/sync/osv/archive/checked.ts'
import {
  type ReadingTask,
  type SharedBlocks,
  readRecords,
  shareBlocks,
  shareReading,
  takeBlock,
  takeSmallBlock,
} from '../../../../src/sync/osv/archive/read-members.ts'
import type { Chunk, ChunkThread } from '../../../../src/base/threads/chunks.ts'
import { type ArchiveFile, openArchive } from '../../../../src/archive/zip/reader.ts'
import { pack } from '../../../archive/zip/archives.ts'
import { longTest, test } from '../../../support/tables.ts'

const COUNT = 1500
const STAMPS = Array.from({ length: COUNT }, (_, i) => new Date(i * 1000).toISOString())

/** An archive of small records, each with a stamp of its own; some are refused. */
async function archive(): Promise<ArchiveFile> {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-sharing-'))
  const path = join(dir, 'all.zip')
  const text = (i: number): string => (i % 100 === 7 ? '{}' : JSON.stringify({ id: `A-${i}`, modified: STAMPS[i] }))
  writeFileSync(path, pack(STAMPS.map((_, i) => [`A-${i}.json`, text(i)])))
  const file = await openArchive(path, { maxMemberBytes: 10_000 })
  onTestFinished(async () => {
    await file.close()
    rmSync(dir, { recursive: true })
  })
  return file
}

/** How a thread goes on: it takes blocks before it is asked, has chunks waiting, or ends. */
interface Turn {
  readonly ahead: number
  readonly waits: boolean
}

/** The other thread in the test's own: it takes blocks when the plan says so, and sends them one by one. */
function planned(file: ArchiveFile, plan: readonly Turn[], failAt = Number.POSITIVE_INFINITY) {
  const sent: Chunk[] = []
  const state = { stopped: 0, blocks: 0 }
  let turn = 0
  const readBlock = async (task: ReadingTask, block: Uint32Array): Promise<void> => {
    await readRecords(file, { ...task, numbers: block }, (chunk) => {
      sent.push(chunk)
      return Promise.resolve(new Uint8Array(1 << 18))
    })
  }
  const thread: Pick<ChunkThread, 'begin' | 'stop'> = {
    begin(data) {
      const task = data as ReadingTask & { numbers: SharedBlocks }
      const taken: Uint32Array[] = []
      const take = (): void => {
        const block = takeBlock(task.numbers)
        if (block !== null) taken.push(block.numbers)
      }
      take() // as a thread that began before this one looks
      return {
        waiting() {
          const { ahead = 1, waits = false } = plan[turn++ % plan.length] ?? {}
          for (let i = 0; i < ahead && taken.length < 3; i++) take()
          return waits ? 1 : 0
        },
        async next() {
          if (state.blocks >= failAt) throw new Error('the disk is gone')
          if (sent.length === 0 && taken.length === 0) take()
          const block = sent.length === 0 ? taken.shift() : undefined
          if (block !== undefined) {
            state.blocks++
            await readBlock(task, block)
          }
          return sent.shift() ?? null
        },
        free: () => undefined,
      }
    },
    stop: () => {
      state.stopped++
      return Promise.resolve()
    },
  }
  return { thread, state }
}

async function readAll(
  file: ArchiveFile,
  { thread }: ReturnType<typeof planned>,
  onShared: () => Promise<void> = () => Promise.resolve(),
) {
  const numbers = Uint32Array.from({ length: COUNT }, (_, i) => COUNT - 1 - i)
  const task = {
    numbers: shareBlocks(numbers, file.directory),
    secrets: [],
    scope: { include: [], exclude: [], vendors: [] },
  }
  await onShared()
  const seen: string[] = []
  await shareReading(thread, file, task, (chunk) =>
    eachChecked(chunk, (member) => seen.push(member.kind === 'refused' ? member.reason : (member.own ?? ''))),
  )
  return seen
}

const EXPECTED = STAMPS.map((stamp, i) => (i % 100 === 7 ? 'not an OSV record: it has no id' : stamp)).reverse()

longTest('members come in their order, whichever thread reads which block', async () => {
  const file = await archive()
  const turn = fc.record({ ahead: fc.nat(2), waits: fc.boolean() })
  await fc.assert(
    fc.asyncProperty(fc.array(turn, { minLength: 1, maxLength: 12 }), async (plan) => {
      const other = planned(file, plan)
      expect(await readAll(file, other)).toEqual(EXPECTED)
      expect(other.state.stopped).toBe(1)
    }),
    { numRuns: 40 },
  )
})

test('a thread that is always ahead reads every block, and one that is behind does not', async () => {
  const file = await archive()
  const ahead = planned(file, [{ ahead: 1, waits: true }])
  expect(await readAll(file, ahead)).toEqual(EXPECTED)
  expect(ahead.state.blocks).toBe(6)
  const behind = planned(file, [{ ahead: 0, waits: false }])
  expect(await readAll(file, behind)).toEqual(EXPECTED)
  expect(behind.state.blocks).toBeLessThan(4)
})

test('an error of the thread ends the reading, and the thread', async () => {
  const file = await archive()
  const other = planned(file, [{ ahead: 1, waits: false }], 1)
  await expect(readAll(file, other)).rejects.toThrow('the disk is gone')
  expect(other.state.stopped).toBe(1)
})

test('a block that cannot be read here ends the reading, and the thread', async () => {
  const file = await archive()
  const other = planned(file, [{ ahead: 0, waits: false }])
  const reading = readAll(file, other, () => file.close())
  await expect(reading).rejects.toThrow('the archive was closed')
  expect(other.state.stopped).toBe(1)
})

test('a block has few members or few bytes, and a large member is left to the thread', () => {
  const sizes = [...Array<number>(300).fill(100), 200_000, 100_000, 300_000, 5_000_000, 10]
  const starts = sizes.map((_, i) => sizes.slice(0, i).reduce((sum, size) => sum + size, 0))
  const directory = {
    offset: (i: number) => starts[i] ?? 0,
    regionEnd: (i: number) => (starts[i] ?? 0) + (sizes[i] ?? 0),
  }
  const blocks = shareBlocks(Uint32Array.from(sizes.keys()), directory)
  expect([...blocks.ends]).toEqual([256, 301, 302, 303, 304, 305])
  const small = () => takeSmallBlock(blocks, directory)?.from ?? null
  expect([small(), small(), small(), small()]).toEqual([0, 256, 301, null])
  expect([takeBlock(blocks)?.from, small(), takeBlock(blocks)?.from]).toEqual([302, null, 303])
  expect([small(), small(), takeBlock(blocks)]).toEqual([304, null, null])
})
