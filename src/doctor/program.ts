import { isOlder } from './versions.ts'
import { type DoctorCheck, failure, fine, warning } from './check.ts'
import type { DoctorWorld } from './world.ts'

/** Creates the checks of the program itself: its settings, and the Node.js that runs it. */
export function programChecks({ loaded, problem, node }: DoctorWorld): DoctorCheck[] {
  const settings: DoctorCheck = {
    name: 'settings',
    title: 'settings and the files that they name',
    needs: [],
    run() {
      if (problem !== null)
        return failure(problem, 'Correct what is named; "patchmirror config" shows each value with its origin.') // prettier-ignore
      const { warnings = [], origins } = loaded ?? {}
      if (warnings.length > 0)
        return warning(warnings.join('; '), 'Change the settings that are named.')
      const own = [...(origins?.values() ?? [])].filter((origin) => origin !== 'default').length
      return fine(`${own} settings differ from the defaults`)
    },
  }
  const nodeVersion: DoctorCheck = {
    name: 'node',
    title: 'version of Node.js',
    needs: [],
    run: () =>
      isOlder(node.version, node.oldest)
        ? failure(
            `Node.js ${node.version} is older than ${node.oldest}, which this program needs`,
            `Install Node.js ${node.oldest} or newer.`,
          )
        : fine(`Node.js ${node.version} (at least ${node.oldest} is needed)`),
  }
  return [settings, nodeVersion]
}
