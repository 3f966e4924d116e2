import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Files of which some take minutes: none of them is to be the last. */
const LOOPS = /^test\/long\//

/** Folders whose tests start daemons and commands in processes of their own. */
const WITH_PROCESSES = /^test\/(e2e|cli|webhooks|relay|bundle)\//

/** How a file begins to use the process that runs the commands of many files (hosted.ts). */
const WITH_HOST = 'commandHost()'

/**
 * Runs the files of loops first, then those that start processes, the others in the order of the library: the workers grow with each file, and
 * the memory of a daemon beside them counts most at the end. Of the first, those whose commands share a process follow each
 * other.
 */
export class ProcessesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const ranks = Map.groupBy(sorted, ({ moduleId }) => rankOf(moduleId))
    return [0, 1, 2, 3].flatMap((rank) => ranks.get(rank) ?? [])
  }
}

function rankOf(moduleId: string): number {
  const path = relative('.', moduleId)
  if (LOOPS.test(path)) return 0
  if (!WITH_PROCESSES.test(path)) return 3
  return hasHost(moduleId) ? 1 : 2
}

function hasHost(path: string): boolean {
  return readFileSync(path, 'utf8').includes(WITH_HOST)
}
