import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Folders whose tests start daemons and commands in processes of their own. */
const WITH_PROCESSES = /^test\/(e2e|cli|webhooks|relay|bundle)\//

/**
 * Runs the files that start processes first, the others in the order of the library: the workers grow with each file, and
 * the memory of a daemon beside them counts most at the end.
 */
export class ProcessesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const [first, rest] = [true, false].map((wanted) =>
      sorted.filter(({ moduleId }) => WITH_PROCESSES.test(relative('.', moduleId)) === wanted),
    )
    return [...(first ?? []), ...(rest ?? [])]
  }
}
