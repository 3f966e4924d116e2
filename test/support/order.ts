import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Folders whose tests start daemons and commands in processes of their own. */
const WITH_PROCESSES = /^test\/(e2e|cli|webhooks|relay|bundle)\//

/** How a file begins to use the process that runs the commands of many files (hosted.ts). */
const WITH_HOST = 'commandHost()'

/**
 * Runs the files that start processes first, the others in the order of the library: the workers grow with each file, and
 * the memory of a daemon beside them counts most at the end. Of the first, those whose commands share a process follow each
 * other.
 */
export class ProcessesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const rank = ({ moduleId }: TestSpecification): number =>
      !WITH_PROCESSES.test(relative('.', moduleId)) ? 2 : hasHost(moduleId) ? 0 : 1
    return [0, 1, 2].flatMap((wanted) => sorted.filter((one) => rank(one) === wanted))
  }
}

function hasHost(path: string): boolean {
  return readFileSync(path, 'utf8').includes(WITH_HOST)
}
