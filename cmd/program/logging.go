// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
)

// logOptions are the logging flags of every subcommand.
type logOptions struct {
	level  string
	format string
}

func (o *logOptions) bind(flags *pflag.FlagSet) {
	flags.StringVar(&o.level, "log-level", "info", "least important log entries to write: debug, info, warn or error")
	flags.StringVar(&o.format, "log-format", "json", "form of log entries: json or text")
}

// logger makes the logger that the flags ask for. Entries go to standard error,
// those of the Kubernetes client libraries too.
func (o *logOptions) logger() (logr.Logger, error) {
	log, err := o.loggerTo(os.Stderr)
	if err == nil {
		klog.SetLogger(log.WithName("client"))
	}
	return log, err
}

func (o *logOptions) loggerTo(w io.Writer) (logr.Logger, error) {
	level, err := zapcore.ParseLevel(o.level)
	if err != nil {
		return logr.Logger{}, fmt.Errorf("--log-level: %q is not one of debug, info, warn, error", o.level)
	}
	var encoder zapcore.Encoder
	switch o.format {
	case "json":
		c := zap.NewProductionEncoderConfig()
		c.EncodeTime = zapcore.RFC3339NanoTimeEncoder
		encoder = zapcore.NewJSONEncoder(c)
	case "text":
		c := zap.NewDevelopmentEncoderConfig()
		c.EncodeTime = zapcore.RFC3339TimeEncoder
		encoder = zapcore.NewConsoleEncoder(c)
	default:
		return logr.Logger{}, fmt.Errorf("--log-format: %q is not one of json, text", o.format)
	}
	sink := zapcore.Lock(zapcore.AddSync(w))
	// The same entry in a loop must not fill a disk: beyond 100 a second, each 100th is written.
	core := zapcore.NewSamplerWithOptions(zapcore.NewCore(encoder, sink, level), time.Second, 100, 100)
	return zapr.NewLogger(zap.New(lazy{core}, zap.ErrorOutput(sink), zap.AddStacktrace(zap.ErrorLevel))), nil
}

// lazy encodes what a logger says with each entry when it writes one: each reconcile has a logger of
// its own, and few write.
type lazy struct{ zapcore.Core }

func (l lazy) With(fields []zapcore.Field) zapcore.Core {
	return lazy{zapcore.NewLazyWith(l.Core, fields)}
}
