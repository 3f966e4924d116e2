import { JSON_FLAG, type VerbPart } from '../../cli/verbs/verb.ts'

/** What looks for whatever is wrong. */
export const DOCTOR_VERBS: readonly VerbPart[] = [
  {
    path: 'doctor',
    options: [JSON_FLAG],
    forms: [
      {
        options: [
          ['--save <file>', 'write what a report of a problem needs into this new zip file, without secrets'],
          ['--log <file>', 'with --save: also the end of this log file of the daemon'],
          JSON_FLAG,
        ],
        load: async () => (await import('./cli/support.ts')).supportCommand,
      },
    ],
    load: async () => (await import('./cli/doctor.ts')).mirrorDoctorCommand,
  },
]
