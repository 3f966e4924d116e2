import { applyLimits } from './limits.ts'

// Imported before the program in a process of its own (test/support/command.ts).
applyLimits(process.env)
