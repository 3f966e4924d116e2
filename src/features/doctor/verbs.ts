import { MIRROR_DOCTOR, SUPPORT } from '../../cli/after-texts.ts'
import { JSON_FLAG, type Verb } from '../../cli/verbs/verb.ts'

/** Commands that look for what is wrong. */
export const DOCTOR_VERBS: readonly Verb[] = [
  {
    path: 'doctor',
    summary: 'check everything, and say what to do',
    options: [JSON_FLAG],
    after: MIRROR_DOCTOR,
    example: 'doctor',
    load: async () => (await import('./cli/doctor.ts')).mirrorDoctorCommand,
  },
  {
    path: 'support',
    arguments: '<file>',
    summary: 'write a report of a problem into a zip file, without secrets',
    options: [['--log <file>', 'also the end of this log file of the daemon'], JSON_FLAG],
    after: SUPPORT,
    example: 'support problem.zip --log /var/log/patchmirror.log',
    load: async () => (await import('./cli/support.ts')).supportCommand,
  },
]
